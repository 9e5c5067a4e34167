package cluster

import (
	"fmt"

	"github.com/musterd/muster/resource"
)

// journal has, while a checkpoint is open, the inverse of each Take and Give.
//
// Invariant: marks ascend by entries; without marks there are no entries.
type journal struct {
	entries []entry
	marks   []checkpoint // that are open, the innermost last
	serial  uint64       // of the checkpoint that was opened last
}

// entry is one Take or Give and the node's sums before it. Restoring the sums is
// cheaper than computing them.
type entry struct {
	node       *Node
	assignment resource.Assignment
	given      bool
	before     Sums
}

// checkpoint is an open checkpoint.
type checkpoint struct {
	serial  uint64
	entries int // that are older
}

// Mark names a checkpoint. Each Mark ends once, by Rollback or by Keep, and the
// checkpoint that was opened last ends first.
type Mark struct{ serial uint64 }

// Checkpoint opens a checkpoint. Until it ends, the State changes by Take and Give
// alone.
func (s *State) Checkpoint() Mark {
	j := &s.journal
	j.serial++
	j.marks = append(j.marks, checkpoint{j.serial, len(j.entries)})
	return Mark{j.serial}
}

// Rollback ends a checkpoint and undoes every Take and Give since it was opened.
func (s *State) Rollback(m Mark) {
	j := &s.journal
	since := j.close("rollback", m)
	for i := len(j.entries) - 1; i >= since; i-- {
		j.entries[i].undo()
		s.markStale(j.entries[i].node)
	}
	j.drop(since)
}

// Keep ends a checkpoint and keeps the changes. An outer checkpoint can still undo
// them.
func (s *State) Keep(m Mark) {
	j := &s.journal
	j.close("keep", m)
	if len(j.marks) > 0 {
		return
	}
	for i := range j.entries {
		if j.entries[i].given {
			s.markGrown(j.entries[i].node)
		} else {
			s.markShrunk(j.entries[i].node)
		}
	}
	j.drop(0)
}

// note adds an entry while a checkpoint is open, and reports whether one is.
func (j *journal) note(e entry) bool {
	if len(j.marks) == 0 {
		return false
	}
	j.entries = append(j.entries, e)
	return true
}

// close ends the innermost checkpoint, which must be m, and returns the number of
// entries that are older.
func (j *journal) close(verb string, m Mark) int {
	last := len(j.marks) - 1
	switch {
	case last < 0:
		panic(fmt.Sprintf("cluster: %s of checkpoint %d: no checkpoint is open", verb, m.serial))
	case j.marks[last].serial != m.serial:
		panic(fmt.Sprintf("cluster: %s of checkpoint %d: checkpoint %d was opened last and ends first", verb, m.serial, j.marks[last].serial))
	}
	since := j.marks[last].entries
	j.marks = j.marks[:last]
	return since
}

// drop forgets the entries from one on.
func (j *journal) drop(since int) {
	clear(j.entries[since:])
	j.entries = j.entries[:since]
}

// undo applies the inverse of the entry.
func (e *entry) undo() {
	n := e.node
	inverse := n.Host.Give
	if e.given {
		inverse = n.Host.Take
	}
	if err := inverse(n.Free, e.assignment); err != nil {
		panic(fmt.Sprintf("cluster: rollback on %s: %v", n.ID, err))
	}
	n.Sums = e.before
}

// needsNoCheckpoint panics where a change that the journal cannot undo is made
// under a checkpoint.
func (s *State) needsNoCheckpoint(verb string, n *Node) {
	if open := len(s.journal.marks); open > 0 {
		panic(fmt.Sprintf("cluster: %s %s: %d checkpoints are open, and only Take and Give can be undone", verb, n.ID, open))
	}
}
