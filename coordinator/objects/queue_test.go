package objects

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// queueLines are the queues of a cache: name, state, members that wait and that run.
func queueLines(c *Cache, rev resource.Revision) (lines []string) {
	items, _ := WrittenQueues.List(c.View(rev, time.Unix(0, 0)))
	for _, q := range items {
		written := ""
		if q.Metadata.ResourceVersion != "" && q.Metadata.ResourceVersion != "0" {
			written = " written"
		}
		lines = append(lines, fmt.Sprintf("%s %s %d %d%s", q.Metadata.Name, q.Spec.State, q.Status.WaitingMembers, q.Status.RunningMembers, written))
	}
	return lines
}

// A queue is there while an operator's object or live work names it; its numbers are
// those of the units' keys.
// A position is the place in the own queue, whatever waits in other queues; the members of
// a group, which have arrived as one, have one place.
func TestAPositionIsThatInTheQueue(t *testing.T) {
	lines := newLines()
	key := func(priority int32, arrival uint64, path string) queue.Key {
		return queue.Key{Priority: priority, Epoch: 1, Counter: arrival, Path: path}
	}
	for _, u := range []waiting{
		{key: key(0, 1, "a"), queue: "night"}, {key: key(9, 5, "b"), queue: "default"}, {key: key(0, 2, "c"), queue: "default"},
		{key: key(0, 3, "d"), queue: "night"}, {key: key(0, 3, "e"), queue: "night"}, {key: key(0, 4, "f"), queue: "night"}, {key: key(7, 6, "g"), queue: "train"},
	} {
		lines.Set(u)
	}
	v := &View{lines: lines}
	for path, c := range map[string]struct {
		queue string
		key   queue.Key
		want  int
	}{
		"a": {"night", key(0, 1, "a"), 1}, "b": {"default", key(9, 5, "b"), 1}, "c": {"default", key(0, 2, "c"), 2}, "d": {"night", key(0, 3, "d"), 2},
		"e": {"night", key(0, 3, "e"), 2}, "f": {"night", key(0, 4, "f"), 4}, "g": {"train", key(7, 6, "g"), 1}, "none": {"train", key(0, 1, "a"), 0},
	} {
		if got := v.queuePosition(c.queue, c.key); got != c.want {
			t.Errorf("%s has position %d in queue %s, want %d", path, got, c.queue, c.want)
		}
	}
}

func TestQueuesFollowWorkAndObjects(t *testing.T) {
	c, kvs, rev := New(), map[string]record.KV{}, resource.Revision(0)
	unit := func(name, queue string, phase api.Phase) record.Unit {
		return record.Unit{
			UID: resource.UnitUID(name), Kind: record.AllocUnit, Namespace: "ml", Name: name, Tenant: "ml", Queue: queue, Phase: string(phase), Members: 1,
			Document: []byte(fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, name)), Sequence: record.Sequence{Epoch: 1, Counter: uint64(rev + 1)},
		}
	}
	object := record.MustEncode(record.Object{UID: "queue-1", Name: "night", Document: []byte(`{"metadata":{"name":"night"},"spec":{"state":"Hold"}}`)})
	key := func(u record.Unit) string { return u.Path().Key() }
	a, b := unit("a", "night", api.Pending), unit("b", "train", api.Pending)
	running, over := unit("a", "night", api.Running), unit("a", "night", api.Cancelled)
	for _, step := range []struct {
		what, key string
		value     []byte
		want      []string
	}{
		{"work names a queue", key(a), record.MustEncode(a), []string{"default Open 0 0", "night Open 1 0"}},
		{"an operator writes it", record.NamedKey(record.QueuesPrefix, "night"), object, []string{"default Open 0 0", "night Hold 1 0 written"}},
		{"more work", key(b), record.MustEncode(b), []string{"default Open 0 0", "night Hold 1 0 written", "train Open 1 0"}},
		{"work runs", key(a), record.MustEncode(running), []string{"default Open 0 0", "night Hold 0 1 written", "train Open 1 0"}},
		{"work is gone", key(b), nil, []string{"default Open 0 0", "night Hold 0 1 written"}},
		{"the object is deleted", record.NamedKey(record.QueuesPrefix, "night"), nil, []string{"default Open 0 0", "night Open 0 1"}},
		{"work has ended", key(a), record.MustEncode(over), []string{"default Open 0 0"}},
	} {
		rev++
		if delete(kvs, step.key); step.value != nil {
			kvs[step.key] = record.KV{Key: step.key, Value: step.value, ModRev: rev}
		}
		c.Touch(step.key)
		if err := c.Refresh(kvs, rev, time.Unix(0, 0)); err != nil {
			t.Fatal(step.what, err)
		}
		if diff := cmp.Diff(step.want, queueLines(c, rev)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}
