package quota_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// only is a scope: units of one class, or "-" for those with a deadline.
type only string

func (o only) Matches(class string, terminating bool) bool {
	return class == string(o) || o == "-" && terminating
}

func TestAdmit(t *testing.T) {
	gpus := func(n int64) resource.Vector { return resource.Vector{resource.GPU: 1000 * n} }
	cases := map[string]struct {
		limits      []quota.Limit
		used, asked quota.Charge
		wantDetails []string
	}{
		"a group without a limit admits anything": {asked: quota.Charge{Request: gpus(1 << 40)}},
		"exactly the limit fits": {
			limits: []quota.Limit{{Hard: gpus(8)}}, used: quota.Charge{Request: gpus(4)}, asked: quota.Charge{Request: gpus(4)},
		},
		"over the limit is refused in the documented sentence": {
			limits: []quota.Limit{{Hard: gpus(100)}}, used: quota.Charge{Request: gpus(98)}, asked: quota.Charge{Request: gpus(4)},
			wantDetails: []string{"exceeded quota: gpu limit 100, requested 4, used 98"},
		},
		"every short resource is named, in order": {
			limits:      []quota.Limit{{Hard: resource.Vector{resource.CPU: 1000, resource.Memory: 1 << 30}}},
			asked:       quota.Charge{Request: resource.Vector{resource.Memory: 2 << 30, resource.CPU: 1500}},
			wantDetails: []string{"exceeded quota: cpu limit 1, requested 1500m, used 0", "exceeded quota: memory limit 1Gi, requested 2Gi, used 0"},
		},
		"an overdrawn resource does not block a request that does not ask for it": {
			limits: []quota.Limit{{Hard: resource.Vector{resource.CPU: 1000}}},
			used:   quota.Charge{Request: resource.Vector{resource.CPU: 5000}}, asked: quota.Charge{Request: resource.Vector{resource.Memory: 1}},
		},
		"a limit of zero refuses": {
			limits: []quota.Limit{{Hard: gpus(0)}}, asked: quota.Charge{Request: resource.Vector{resource.GPU: 500}},
			wantDetails: []string{"exceeded quota: gpu limit 0, requested 500m, used 0"},
		},
		"members are counted as pods": {
			limits: []quota.Limit{{Hard: resource.Vector{resource.Pods: 5}}}, used: quota.Charge{Members: 3}, asked: quota.Charge{Members: 3},
			wantDetails: []string{"exceeded quota: pods limit 5, requested 3, used 3"},
		},
		"a soft limit refuses nobody": {
			limits: []quota.Limit{{Soft: gpus(1)}}, asked: quota.Charge{Request: gpus(4)},
		},
		"every limit must have room": {
			limits: []quota.Limit{{Name: "b", Hard: gpus(2)}, {Name: "a", Hard: gpus(3)}, {Name: "c", Hard: gpus(4)}}, asked: quota.Charge{Request: gpus(4)},
			wantDetails: []string{"exceeded quota: gpu limit 3, requested 4, used 0", "exceeded quota: gpu limit 2, requested 4, used 0"},
		},
		"a limit does not hold units out of its scope": {
			limits: []quota.Limit{{Hard: gpus(2), Scope: only("low")}}, asked: quota.Charge{Request: gpus(4), Class: "high"},
		},
		"units out of scope do not use it up": {
			limits: []quota.Limit{{Hard: gpus(4), Scope: only("-")}}, used: quota.Charge{Request: gpus(4)},
			asked: quota.Charge{Request: gpus(4), Terminating: true},
		},
		"units in scope do": {
			limits: []quota.Limit{{Hard: gpus(4), Scope: only("-")}}, used: quota.Charge{Request: gpus(1), Terminating: true},
			asked: quota.Charge{Request: gpus(4), Terminating: true}, wantDetails: []string{"exceeded quota: gpu limit 4, requested 4, used 1"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := quota.New()
			for _, limit := range c.limits {
				l.SetLimit(limit)
			}
			l.Charge("old", c.used)
			var details []string
			for _, s := range l.Admit(&c.asked) {
				details = append(details, s.Reason().Detail)
			}
			if diff := cmp.Diff(c.wantDetails, details); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
		})
	}
}

// Usage equals the sum over a naive set under any history of charges,
// discharges and changes of limits, repeated ones included.
func TestUsageIsASetOfTransactions(t *testing.T) {
	groups, scopes := []string{"a", "b"}, []quota.Scope{nil, only(""), only("low"), only("-")}
	rapid.Check(t, func(t *rapid.T) {
		l := quota.New()
		live, limits := map[resource.TxID]quota.Charge{}, map[string]quota.Scope{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			tx := resource.TxID(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "tx")))
			group, name := rapid.SampledFrom(groups).Draw(t, "group"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "limit")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				c := quota.Charge{
					Group: group, Request: resource.Vector{resource.CPU: rapid.Int64Range(0, 5000).Draw(t, "cpu")},
					Class: rapid.SampledFrom([]string{"", "low"}).Draw(t, "class"), Terminating: rapid.Bool().Draw(t, "terminating"),
				}
				l.Charge(tx, c)
				if _, dup := live[tx]; !dup {
					live[tx] = c
				}
			case 3:
				l.Discharge(tx)
				delete(live, tx)
			case 4:
				limits[group+name] = rapid.SampledFrom(scopes).Draw(t, "scope")
				l.SetLimit(quota.Limit{Group: group, Name: name, Hard: resource.Vector{resource.CPU: 1}, Scope: limits[group+name]})
			case 5:
				l.RemoveLimit(group, name)
				delete(limits, group+name)
			}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			for key, scope := range limits {
				var want int64
				for _, c := range live {
					if c.Group == key[:1] && (scope == nil || scope.Matches(c.Class, c.Terminating)) {
						want += c.Request[resource.CPU]
					}
				}
				if got := l.Used(key[:1], key[1:])[resource.CPU]; got != want {
					t.Fatalf("limit %s counts %d, want %d", key, got, want)
				}
			}
		}
	})
}

func BenchmarkLimits(b *testing.B) {
	l := quota.New()
	for _, name := range []string{"all", "low"} {
		l.SetLimit(quota.Limit{Group: "ml", Name: name, Hard: resource.Vector{resource.GPU: 1 << 40, resource.CPU: 1 << 40}})
	}
	c := quota.Charge{Group: "ml", Request: resource.Vector{resource.GPU: 1000, resource.CPU: 8000}, Members: 1}
	b.ReportAllocs()
	for b.Loop() {
		if l.Admit(&c) != nil {
			b.Fatal("refused")
		}
		l.Charge("tx", c)
		l.Discharge("tx")
	}
}
