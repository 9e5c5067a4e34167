package loss_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/loss"
	"github.com/musterd/muster/coordinator/record"
)

func TestNext(t *testing.T) {
	const isLost, isThere = true, false
	for name, c := range map[string]struct {
		before record.NodeLost
		held   map[string]bool
		want   record.NodeLost
	}{
		"nothing is held, nothing was lost":         {},
		"healthy devices are not named":             {held: map[string]bool{"a": isThere}},
		"two held devices are lost":                 {held: map[string]bool{"b": isLost, "a": isLost, "c": isThere}, want: record.NodeLost{Lost: []string{"a", "b"}}},
		"a device returns to its holder":            {before: record.NodeLost{Lost: []string{"a", "b"}}, held: map[string]bool{"a": isThere, "b": isLost}, want: record.NodeLost{Lost: []string{"b"}, Returned: []string{"a"}}},
		"a returned device stays while it is held":  {before: record.NodeLost{Returned: []string{"a"}}, held: map[string]bool{"a": isThere}, want: record.NodeLost{Returned: []string{"a"}}},
		"a returned device is lost again":           {before: record.NodeLost{Returned: []string{"a"}}, held: map[string]bool{"a": isLost}, want: record.NodeLost{Lost: []string{"a"}}},
		"nobody holds the devices any more":         {before: record.NodeLost{Lost: []string{"a"}, Returned: []string{"b"}}},
		"another device is held than was named":     {before: record.NodeLost{Lost: []string{"a"}}, held: map[string]bool{"b": isThere}},
		"a returned device that is held by another": {before: record.NodeLost{Returned: []string{"a"}}, held: map[string]bool{"a": isThere, "b": isThere}, want: record.NodeLost{Returned: []string{"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, loss.Next(c.before, c.held)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The revision of what a holder shows never goes back: as long as a device is held, a
// record that names it is followed by records that name it. And a record is its own
// successor while nothing changes.
func TestADeviceIsNamedAsLongAsItIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r record.NodeLost
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			held := rapid.MapOfN(rapid.Map(rapid.IntRange(0, 6), func(n int) string { return fmt.Sprint("GPU-", n) }), rapid.Bool(), 0, 7).Draw(t, "held")
			next := loss.Next(r, held)
			for uuid, lost := range held {
				if named := next.Names(uuid); named != (lost || r.Names(uuid)) || slices.Contains(next.Lost, uuid) != lost {
					t.Fatalf("%s, lost %t, held: %+v follows %+v", uuid, lost, next, r)
				}
			}
			for _, uuid := range slices.Concat(next.Lost, next.Returned) {
				if _, there := held[uuid]; !there {
					t.Fatalf("%s is held by nobody: %+v", uuid, next)
				}
			}
			if diff := cmp.Diff(next, loss.Next(next, held)); diff != "" {
				t.Fatalf("nothing has changed (-before +after):\n%s", diff)
			}
			if _, err := record.Encode(next); err != nil {
				t.Fatal(err)
			}
			r = next
		}
	})
}
