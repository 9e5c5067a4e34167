package enroll

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Which of two records of one node wins, whichever comes first.
func TestTheNewerDecisionWins(t *testing.T) {
	ban := func(generation int64, banned bool) record.Ban {
		return record.Ban{Banned: banned, At: "t", Generation: generation}
	}
	for name, c := range map[string]struct{ a, b, want record.Ban }{
		"a pardon after a ban":           {ban(1, true), ban(2, false), ban(2, false)},
		"a ban after a pardon":           {ban(2, false), ban(3, true), ban(3, true)},
		"a ban and a pardon of one time": {ban(2, true), ban(2, false), ban(2, true)},
	} {
		for _, order := range [][]record.Ban{{c.a, c.b}, {c.b, c.a}} {
			k := newKnown()
			for _, b := range order {
				k.takeBan("n", b)
			}
			if got := k.bans["n"]; got != c.want {
				t.Errorf("%s: %+v wins, want %+v", name, got, c.want)
			}
		}
	}
}

func TestGenerationsGrowWhateverClocksDo(t *testing.T) {
	now := time.UnixMilli(1000)
	for name, c := range map[string]struct{ before, want int64 }{
		"the first":                     {0, 1000},
		"later":                         {999, 1000},
		"in the same millisecond":       {1000, 1001},
		"by a clock that is far behind": {5000, 5001},
	} {
		if got := generation(c.before, now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// What is put back after a restore: records that the store has not, or older
// ones of, unless their certificates are over.
func TestOnlyWhatTheStoreLostIsPutBack(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	enrolled := func(generation int64, expires string) record.Enrolled {
		return record.Enrolled{Keys: []string{"ab"}, Expires: expires, Generation: generation}
	}
	const good, over = "2026-03-02T00:00:00Z", "2026-02-28T00:00:00Z"
	k, stored := newKnown(), newKnown()
	k.enrolled = map[resource.NodeID]record.Enrolled{
		"same": enrolled(5, good), "newer": enrolled(6, good), "absent": enrolled(5, good), "over": enrolled(5, over), "of before 0.2": enrolled(0, good), "older": enrolled(4, good),
	}
	stored.enrolled = map[resource.NodeID]record.Enrolled{"same": enrolled(5, good), "newer": enrolled(5, good), "older": enrolled(5, good)}
	k.bans = map[resource.NodeID]record.Ban{"lost": {Banned: true, At: "t", Generation: 1}, "known": {At: "t", Generation: 2}}
	stored.bans = map[resource.NodeID]record.Ban{"known": {At: "t", Generation: 2}}
	var got []string
	for _, p := range k.missing(stored, now) {
		got = append(got, p.key)
	}
	want := []string{record.BanKey("lost"), record.EnrolledKey("absent"), record.EnrolledKey("newer")}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("put back %q, want %q", got, want)
	}
}

// FuzzKnown: no key or value of the store, or of the kept file, panics or is kept
// in a form that cannot be written again.
func FuzzKnown(f *testing.F) {
	f.Add(record.BanKey("n3"), []byte(`{"v":1,"banned":true,"at":"t","generation":1}`))
	f.Add(record.EnrolledKey("n3"), []byte(`{"v":1,"keys":["ab"],"issuer":"00","expires":"t","enrolled":"t","generation":2}`))
	f.Add(record.OperatorKey("ab"), []byte(`{"v":1,"name":"ann","certified":"t","expires":"2126-01-02T03:04:05Z","revoked":"t"}`))
	f.Add(record.BansPrefix+"%zz", []byte(`{}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		k := newKnown()
		if _, err := k.take(record.KV{Key: key, Value: value}); err != nil {
			return
		}
		_ = k.missing(newKnown(), time.Now())
		_ = k.revoked(time.Now())
		k.drop(key)
	})
}
