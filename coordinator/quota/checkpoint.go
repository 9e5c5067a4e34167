package quota

import (
	"fmt"
	"slices"
)

// Mark names a checkpoint of one Manager. The zero Mark names none.
type Mark struct{ serial uint64 }

// openMark is a checkpoint that has not ended: its serial number and the length
// of the journal when it began.
type openMark struct {
	serial  uint64
	records int
}

// Checkpoint begins a checkpoint. Until it ends, by Rollback or by Keep, the
// Manager remembers every change by Allocate, Deallocate, Try, Undo and Restore.
// Checkpoints nest: the one that began last ends first.
//
// A checkpoint is about allocations alone. Time, mode, forests without trees,
// caches and consumers that are registered meanwhile stay as they are. Calls that
// remove a consumer, update a tree, or add or remove trees end all checkpoints and
// keep their changes.
//
// An open checkpoint costs the memory of a record per change, and its Rollback as
// much time as the changes took.
func (m *Manager) Checkpoint() Mark {
	j := &m.log
	j.serial++
	j.marks = append(j.marks, openMark{j.serial, len(j.records)})
	m.try = try{}
	return Mark{j.serial}
}

// Rollback ends a checkpoint and takes back every change since it began: all
// consumers stand where they stood, in the same order and since the same time.
// Moves then returns the way back. It is an error if the checkpoint has ended
// (ErrStale), or if another that began later has not (ErrNested); nothing changes
// then.
func (m *Manager) Rollback(mark Mark) error {
	at, err := m.endCheckpoint(mark)
	if err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	m.takeBack(at.records)
	m.forgetIfUnmarked()
	return nil
}

// Keep ends a checkpoint and keeps its changes; a checkpoint around it can still
// take them back. The errors are Rollback's.
func (m *Manager) Keep(mark Mark) error {
	if _, err := m.endCheckpoint(mark); err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	m.try = try{}
	m.forgetIfUnmarked()
	return nil
}

// endCheckpoint removes the innermost checkpoint, which mark must name.
func (m *Manager) endCheckpoint(mark Mark) (openMark, error) {
	marks := m.log.marks
	i := slices.IndexFunc(marks, func(o openMark) bool { return o.serial == mark.serial })
	switch last := len(marks) - 1; {
	case i < 0:
		return openMark{}, fmt.Errorf("checkpoint %d: %w", mark.serial, ErrStale)
	case i < last:
		return openMark{}, fmt.Errorf("checkpoint %d: %w: %d", mark.serial, ErrNested, last-i)
	default:
		m.log.marks = marks[:last]
		return marks[last], nil
	}
}

// forgetIfUnmarked drops what only checkpoints need, once none is open. The
// records of the last call stay for Moves until the next call.
func (m *Manager) forgetIfUnmarked() {
	if j := &m.log; len(j.marks) == 0 {
		j.settled = j.settled[:0]
	}
}

// takeBack takes back everything since a position of the journal, as a call of
// its own.
func (m *Manager) takeBack(to int) {
	j := &m.log
	m.undoneTo, m.undone = len(j.records), true
	m.rollback(to)
	j.call, j.callVictims = len(j.records), len(j.victims)
	m.try = try{}
}

// beginRebuild begins a call after which the journal's records would name other
// seats, nodes or trees.
func (m *Manager) beginRebuild() {
	m.log.marks = m.log.marks[:0]
	m.forgetIfUnmarked()
	m.begin()
}
