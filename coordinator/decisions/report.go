package decisions

import "fmt"

// Rule names what a violation breaks.
type Rule string

// The rules.
const (
	RuleFormat       Rule = "format"          // a line cannot be read
	RuleSequence     Rule = "sequence"        // records are missing, and no gap says so
	RuleState        Rule = "state"           // a record disagrees with what came before
	RuleOrder        Rule = "order"           // placed, waiting or leaving where it is not
	RuleUntried      Rule = "untried"         // passed over without any evidence, or before a unit that wants the same
	RuleInadmissible Rule = "inadmissible"    // the evidence is of a kind that may not pass over
	RuleStale        Rule = "stale"           // not tried again after something happened that may help
	RuleGeneration   Rule = "generation"      // of format 1: of a time before something that the log says was freed
	RuleCounts       Rule = "counts"          // the counts of a placement are not those of the order
	RuleTwice        Rule = "twice"           // a transaction is placed, committed or ended once more
	RuleUnplaced     Rule = "unplaced"        // committed or aborted without having been placed
	RuleRunning      Rule = "running"         // a unit is placed while it runs or is being placed
	RulePriority     Rule = "victim-priority" // a preemption's victim is not of strictly lower priority
	RuleNominated    Rule = "nominated"       // uses a device that a unit ahead is nominated to
)

// Violation is one breach.
type Violation struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Rule   Rule   `json:"rule"`
	Unit   string `json:"unit,omitempty"`
	Detail string `json:"detail"`
}

// String returns "file:line: rule: unit: detail".
func (v Violation) String() string {
	unit := v.Unit
	if unit != "" {
		unit += ": "
	}
	return fmt.Sprintf("%s:%d: %s: %s%s", v.File, v.Line, v.Rule, unit, v.Detail)
}

// Note is something that cannot be verified, and is not known to be wrong.
type Note struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Detail string `json:"detail"`
}

// Report is what a Checker has found. Verified placements are those whose
// order was known; the others stand between a gap, or a file that is not there,
// and the next State.
type Report struct {
	Files       int `json:"files"`
	Records     int `json:"records"`
	Terms       int `json:"terms"`
	Placements  int `json:"placements"`
	Verified    int `json:"verified"`
	Commits     int `json:"commits"`
	Aborts      int `json:"aborts"`
	Ends        int `json:"ends"`
	Preemptions int `json:"preemptions"`
	Claims      int `json:"claims"`
	// PassedOver adds up those who stood ahead of verified placements.
	PassedOver Counts `json:"passedOver"`
	LongestRow int    `json:"longestRow"` // most that stood ahead of one
	Lost       uint64 `json:"lost"`       // records, as gaps tell
	Restored   int    `json:"restored"`   // how often a term noticed that the store was restored

	Notes      []Note      `json:"notes"`
	Violations []Violation `json:"violations"`
}

// OK reports that nothing is wrong, as far as the log can tell.
func (r *Report) OK() bool { return len(r.Violations) == 0 }
