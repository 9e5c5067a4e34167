package quota_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

func cards(n int64) resource.Vector { return resource.Vector{resource.GPU: n * 1000} }

// A limit for each user counts the charges of that user alone, beside the limit of all.
func TestALimitForEachUser(t *testing.T) {
	l := quota.New()
	l.SetLimit(quota.Limit{Group: "ml", Name: "q", Hard: cards(10), PerUser: cards(4)})
	l.Charge("a1", quota.Charge{Group: "ml", Request: cards(3), Members: 1, User: "ada"})
	l.Charge("b1", quota.Charge{Group: "ml", Request: cards(4), Members: 1, User: "cert:bob"})
	l.Charge("o1", quota.Charge{Group: "other", Request: cards(4), Members: 1, User: "ada"})
	for name, c := range map[string]struct {
		group, user string
		wants       int64
		want        []string
	}{
		"a user with room":              {"ml", "ada", 1, nil},
		"a user beyond the own limit":   {"ml", "ada", 2, []string{"exceeded quota: gpu limit 4 per user, requested 2, used 3 by ada"}},
		"a user at the own limit":       {"ml", "cert:bob", 1, []string{"exceeded quota: gpu limit 4 per user, requested 1, used 4 by cert:bob"}},
		"a user with nothing":           {"ml", "eve", 3, nil},
		"more than a user ever has":     {"ml", "eve", 5, []string{"exceeded quota: gpu limit 10, requested 5, used 7", "exceeded quota: gpu limit 4 per user, requested 5, used 0 by eve"}},
		"the limit of all comes too":    {"ml", "eve", 4, []string{"exceeded quota: gpu limit 10, requested 4, used 7"}},
		"a unit whose user is unknown":  {"ml", "", 3, nil},
		"a namespace without the limit": {"other", "ada", 9, nil},
		"nothing of the resource":       {"ml", "cert:bob", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range l.Admit(&quota.Charge{Group: c.group, Request: cards(c.wants), Members: 1, User: c.user}) {
				got = append(got, s.Reason().Detail)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if !l.CountsUsers("ml") || l.CountsUsers("other") {
		t.Errorf("users are counted: ml %t, other %t", l.CountsUsers("ml"), l.CountsUsers("other"))
	}
	want := map[string]resource.Vector{"ada": cards(3), "cert:bob": cards(4)}
	if diff := cmp.Diff(want, l.UsedByUsers("ml", "q")); diff != "" {
		t.Error(diff)
	}
	if never := l.NeverAdmits(&quota.Charge{Group: "ml", Request: cards(5), User: "ada"}); len(never) != 1 || never[0].User != "ada" || never[0].Used != 0 {
		t.Errorf("5 GPUs of a user are never admitted: %+v", never)
	}
	l.Discharge("b1")
	if diff := cmp.Diff(map[string]resource.Vector{"ada": cards(3)}, l.UsedByUsers("ml", "q")); diff != "" {
		t.Error(diff)
	}
}

// plain keeps charges in a list and sums them up at each question.
type plain map[resource.TxID]quota.Charge

func (p plain) used(group, user string) (used int64) {
	for _, c := range p {
		if c.Group == group && (user == "" || c.User == user) {
			used += c.Request[resource.GPU] / 1000
		}
	}
	return used
}

// Whatever is admitted, charged, discharged, limited anew and forked, limits answer as a
// list of charges does, and no user whose charges were admitted is over the limit.
func TestLimitsOfUsersAgreeWithAListOfCharges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, oracle, per, all := quota.New(), plain{}, int64(-1), int64(-1)
		user := rapid.SampledFrom([]string{"", "ada", "bob", "eve"})
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				per, all = rapid.Int64Range(0, 8).Draw(t, "per user"), rapid.Int64Range(8, 20).Draw(t, "hard")
				l.SetLimit(quota.Limit{Group: "ml", Name: "q", Hard: cards(all), PerUser: cards(per)})
			case 1:
				for tx := range oracle {
					l.Discharge(tx)
					delete(oracle, tx)
					break
				}
			case 2:
				l = l.Snapshot().Fork()
			default:
				tx := resource.TxID(fmt.Sprint("tx", i))
				c := quota.Charge{Group: rapid.SampledFrom([]string{"ml", "other"}).Draw(t, "group"), Request: cards(rapid.Int64Range(0, 5).Draw(t, "GPUs")), Members: 1, User: user.Draw(t, "user")}
				n := c.Request[resource.GPU] / 1000
				fits := c.Group != "ml" || per < 0 || n == 0 ||
					oracle.used("ml", "")+n <= all && (c.User == "" || oracle.used("ml", c.User)+n <= per)
				if got := l.Admit(&c) == nil; got != fits {
					t.Fatalf("%+v: admitted %t, want %t", c, got, fits)
				}
				if fits {
					l.Charge(tx, c)
					oracle[tx] = c
				}
			}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			for _, u := range []string{"ada", "bob", "eve"} {
				if got := l.UsedByUsers("ml", "q")[u][resource.GPU] / 1000; per >= 0 && got != oracle.used("ml", u) {
					t.Fatalf("%s has %d, want %d", u, got, oracle.used("ml", u))
				}
			}
		}
	})
}
