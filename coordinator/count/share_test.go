package count_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/count"
)

func TestShareRefuses(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		share          count.Share
		own, all, more int64
		want           string
	}{
		"without a bound":                         {0, 1 << 40, 1 << 40, 1 << 40, ""},
		"the first half":                          {100 * mib, 0, 0, 50 * mib, ""},
		"more than half for one tenant":           {100 * mib, 49 * mib, 49 * mib, 2 * mib, "tenant ml has documents of 51380224 bytes in all of its namespaces and may have 52428800, half of the room of all tenants: there is no room for 2097152 more"},
		"up to three quarters":                    {100 * mib, 24 * mib, 74 * mib, mib, ""},
		"the last quarter for one with much":      {100 * mib, 24 * mib, 75 * mib, 1, "all tenants have documents of 78643200 bytes and may have 104857600, the last quarter of which is for tenants with at most 1048576: there is no room for 1 more of tenant ml, which has 25165824"},
		"the last quarter for one with little":    {100 * mib, 0, 90 * mib, mib, ""},
		"nothing is left for one with little":     {100 * mib, 0, 100 * mib, 1, "there is no room for 1 more of tenant ml, which has 0"},
		"a change that adds nothing":              {100 * mib, 90 * mib, 120 * mib, 0, ""},
		"a change that shrinks a document":        {100 * mib, 90 * mib, 120 * mib, -1, ""},
		"a share that is smaller than a tenant's": {mib, 0, 0, mib, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status := c.share.Refuse("ml", c.own, c.all, c.more)
			switch {
			case status == nil && c.want == "":
			case status == nil || c.want == "":
				t.Errorf("got %v, want %q", status, c.want)
			case status.Code != 429 || status.Reason != "TooManyObjects" || !strings.Contains(status.Message, c.want):
				t.Errorf("got %+v, want %q", status, c.want)
			}
			if status != nil && c.share.IsFar(c.all, c.more) {
				t.Error("it is refused, and IsFar says that nobody would be")
			}
		})
	}
}

// Whatever tenants store, the sum keeps to the share, none has more than half, and a
// tenant without documents finds room beside as many large ones as want all.
func TestShareLeavesRoomForTheNext(t *testing.T) {
	const mib = 1 << 20
	rapid.Check(t, func(t *rapid.T) {
		share := count.Share(rapid.Int64Range(8, 64).Draw(t, "MiB")) * mib
		own, all := map[string]int64{}, int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			tenant := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "tenant")
			more := rapid.Int64Range(-4*mib, 8*mib).Draw(t, "more")
			if more < 0 {
				more = -min(-more, own[tenant])
			}
			refused := share.Refuse(tenant, own[tenant], all, more) != nil
			if refused && share.IsFar(all, more) {
				t.Fatal("IsFar is wrong")
			}
			if !refused {
				own[tenant] += more
				all += more
			}
			if all > int64(share) || own[tenant] > max(int64(share)/2, count.SmallTenant) {
				t.Fatalf("%d of %d are stored, %d of one tenant", all, share, own[tenant])
			}
		}
		if rest := int64(share) - all; rest >= mib && share.Refuse("late", 0, all, mib) != nil {
			t.Fatalf("beside %d of %d a tenant that comes late finds no room", all, share)
		}
	})
}
