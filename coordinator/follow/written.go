package follow

import (
	"bytes"
	"sync"

	"github.com/musterd/muster/coordinator/record"
)

// mostWritten bounds the records that wait for the watch. Beyond it the oldest half is
// forgotten, which the watch then decodes as those of other coordinators.
const mostWritten = 2048

// written are the records that this process has sent to the store and the watch has not
// brought back yet. The watch brings the bytes: where they are those that were sent, the
// record is the one that they were made of, and nobody needs to decode it. The zero
// value is empty.
//
// Invariant: old and young have at most mostWritten/2 keys each.
type written struct {
	mu         sync.Mutex
	old, young map[string]record.Op
}

// Expect takes the operations of a Txn that is sent to the store, whatever comes of it.
func (f *Follower) Expect(ops []record.Op) { f.written.add(ops) }

// add remembers the operations whose record is known.
func (w *written) add(ops []record.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, op := range ops {
		if op.Of == nil {
			continue
		}
		if w.young == nil || len(w.young) >= mostWritten/2 {
			w.old, w.young = w.young, map[string]record.Op{}
		}
		w.young[op.Key] = op
	}
}

// take returns a pointer to the record of a key, nil where it is not known, and forgets
// it.
func (w *written) take(kv *record.KV) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	op, found := w.young[kv.Key]
	if !found {
		op, found = w.old[kv.Key]
	}
	if !found || !bytes.Equal(op.Value, kv.Value) {
		return nil
	}
	delete(w.young, kv.Key)
	delete(w.old, kv.Key)
	return op.Of
}
