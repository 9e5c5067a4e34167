package invariant

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/resource"
)

// Rule is one clause of an invariant. Its first word is the invariant's number
// in PROTOCOL.md section 2, or names, quarantine or alarm, for rules that the
// protocol states elsewhere.
type Rule string

// The rules. Rules says what each needs and demands.
const (
	I1Records      Rule = "I1 records"
	I1Hardware     Rule = "I1 hardware"
	I1Ledger       Rule = "I1 ledger"
	I1Grants       Rule = "I1 grants"
	I1Workloads    Rule = "I1 workloads"
	I2Configured   Rule = "I2 configured"
	I2Quotas       Rule = "I2 quotas"
	I2Admissions   Rule = "I2 admissions"
	I2Trees        Rule = "I2 trees"
	I3Incarnations Rule = "I3 incarnations"
	I3Members      Rule = "I3 members"
	I3Demand       Rule = "I3 demand"
	I3Protected    Rule = "I3 protected"
	I3Launch       Rule = "I3 launch"
	I4Told         Rule = "I4 told"
	I4Committed    Rule = "I4 committed"
	I4Asked        Rule = "I4 asked"
	I4History      Rule = "I4 history"
	I5Freed        Rule = "I5 freed"
	I6Unit         Rule = "I6 unit"
	I7Victims      Rule = "I7 victims"
	I7Asked        Rule = "I7 asked"
	I7Waiting      Rule = "I7 waiting"
	I7Nominated    Rule = "I7 nominated"
	I7Undecided    Rule = "I7 undecided"
	I8Freed        Rule = "I8 freed"
	I8Stopped      Rule = "I8 stopped"
	I9Replay       Rule = "I9 replay"
	I10Word        Rule = "I10 word"
	I10Workloads   Rule = "I10 workloads"
	I10Held        Rule = "I10 held"
	I10Lost        Rule = "I10 lost"
	I11Edges       Rule = "I11 edges"
	I11Deleted     Rule = "I11 deleted"
	I11Again       Rule = "I11 again"
	I11Swap        Rule = "I11 swap"
	I11Named       Rule = "I11 named"
	I12Commits     Rule = "I12 commits"
	I12Writers     Rule = "I12 writers"
	I12Commands    Rule = "I12 commands"
	I12Promises    Rule = "I12 promises"
	I13Index       Rule = "I13 index"
	I13Records     Rule = "I13 records"
	I13Grants      Rule = "I13 grants"
	I13Devices     Rule = "I13 devices"
	I13Units       Rule = "I13 units"
	I17Group       Rule = "I17 group"
	I18Replacement Rule = "I18 replacement"
	I14Tenants     Rule = "I14 tenants"
	NamesAttempts  Rule = "names attempts"
	QuarantineKept Rule = "quarantine kept"
	AlarmRaised    Rule = "alarm raised"
)

// Invariant is the number of the invariant that the rule is of.
func (r Rule) Invariant() string {
	number, _, _ := strings.Cut(string(r), " ")
	return number
}

// Violation is one breach of one rule.
type Violation struct {
	Rule     Rule
	Revision resource.Revision // of the store's content that breaks the rule
	// Objects are the transactions, units, nodes and devices that the breach is
	// about, as they are called in the text.
	Objects []string
	// Have and Bound are the amounts that were compared; 0 where none were.
	Have, Bound int64
	Text        string
}

// String is the violation in one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: revision %d: %s", v.Rule, v.Revision, v.Text)
}

// Facts are kinds of things that a harness tells the checker.
type Facts uint32

// The kinds. Their names are in factNames, in this order.
const (
	// Changes: each revision's changes of records, units, their order, the nodes'
	// indices and identities, and candidates.
	Changes Facts = 1 << iota
	// Quotas: resource quotas and trees, as changes, and limits that were configured.
	Quotas
	// Writers: the epoch under which each Txn of a leader was sent.
	Writers
	// Admissions: the limit under which a leader admitted each attempt.
	Admissions
	// Rest: the agents' grants when the cluster is at rest.
	Rest
	// Moments: the agents' grants at the moment of each revision.
	Moments
	// Assignments: grants come with all of their assignments, not with devices alone.
	Assignments
	// Workloads: what runs on each host, and how each workload begins and ends.
	Workloads
	// Commands: what each ledger decides, command by command.
	Commands
	// Replays: what each ledger was before and after a restart.
	Replays
	// Messages: what leaders and agents say to each other, and when.
	Messages
	// Words: each word of an agent that it has freed its part of a transaction.
	Words
	// Clients: what clients were told, when they were told.
	Clients
	// Histories: what clients were told, at the end.
	Histories
	// Wishes: which ends and evictions somebody has asked for.
	Wishes
	// Demands: what each client has asked for.
	Demands
	// Nominations: the nodes of each preemption.
	Nominations
	// Hardware: the devices that each node may have.
	Hardware
	// Principals: who sends each request, and what each may see.
	Principals
)

func factNames() []string {
	return []string{
		"changes", "quotas", "writers", "admissions", "rest", "moments", "assignments", "workloads", "commands", "replays", "messages", "words",
		"clients", "histories", "wishes", "demands", "nominations", "hardware", "principals",
	}
}

// String lists the kinds.
func (f Facts) String() string {
	var names []string
	for i, name := range factNames() {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Harness is what checks whole clusters, with the facts that it gives.
type Harness struct {
	Name  string
	Gives Facts
}

// Harnesses are the harnesses that use the checker. test/chaos and test/histories
// run the clusters of test/cluster.
func Harnesses() []Harness { return []Harness{Sim(), Rig(), Cluster()} }

// Sim is test/sim.
func Sim() Harness {
	return Harness{"sim", Changes | Quotas | Writers | Admissions | Rest | Moments | Assignments | Workloads | Commands | Replays | Words |
		Clients | Wishes | Demands | Nominations | Hardware}
}

// Rig is test/rig.
func Rig() Harness {
	return Harness{"rig", Changes | Quotas | Writers | Rest | Assignments | Messages | Words | Hardware}
}

// Cluster is test/cluster.
func Cluster() Harness {
	return Harness{"cluster", Changes | Quotas | Rest | Histories}
}

// Lacks are the facts that a harness does not give and the rule needs; 0 means
// that the harness checks the rule.
func (h Harness) Lacks(r Rule) Facts {
	for _, d := range Rules() {
		if d.Rule == r {
			return d.Needs &^ h.Gives
		}
	}
	return ^Facts(0)
}

// Table shows which harness checks which rule, one rule a line: "yes", or the
// facts that the harness does not give.
func Table() []string {
	lines := []string{fmt.Sprintf("%-16s %-13s %-23s %s", "rule", "sim", "rig", "cluster, chaos, histories")}
	for _, d := range Rules() {
		line := fmt.Sprintf("%-16s", d.Rule)
		for i, h := range Harnesses() {
			answer := "yes"
			if lacks := h.Lacks(d.Rule); lacks != 0 {
				answer = "no " + lacks.String()
			}
			line += fmt.Sprintf(" %-*s", []int{13, 23, 0}[i], answer)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}
