package lead

import (
	"fmt"
	"strings"
	"testing"
)

// newDependencyScene is a scene with room for many jobs.
func newDependencyScene(b *testing.B) *scene {
	rules := sceneRules()
	rules.StartsWork, rules.NamespaceAllocations = true, 1<<20
	return newSceneOf(b, rules)
}

// layers submits jobs in layers of so many; each waits for all jobs of the layer before.
// The last layer is returned, as the dependencies on it.
func (x *scene) layers(jobs, wide int) string {
	before := ""
	for i := 0; i < jobs; i += wide {
		var layer []string
		for n := range wide {
			name := fmt.Sprint("j", i+n)
			x.depends(name, before)
			layer = append(layer, "afterok:"+name)
		}
		before = strings.Join(layer, " ")
	}
	return before
}

// BenchmarkCycles is the search for a cycle before a job is taken, which waits for 9,000
// others, directly and over others. One job waits for the new one, or one that was
// cancelled did, or none.
func BenchmarkCycles(b *testing.B) {
	for _, wide := range []int{1, 8, 60} {
		x := newDependencyScene(b)
		last := x.layers(9_000/wide*wide, wide)
		x.depends("waits", "afterok:new")
		x.cancels(x.depends("waited", "afterok:fresh").Job, false)
		for _, c := range []struct{ by, name string }{{"one", "new"}, {"a cancelled one", "fresh"}, {"none", "lone"}} {
			b.Run(fmt.Sprintf("dependencies=%d/awaited by %s", wide, c.by), func(b *testing.B) {
				s := x.submissionOf(fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{%s"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, c.name, dependenciesOf(last)))
				b.ReportAllocs()
				for b.Loop() {
					if status := x.refusesCycle(s); status != nil {
						b.Fatal(status)
					}
				}
			})
		}
	}
}

// BenchmarkChangeOfAnAwaitedJob is a change of a job for which so many wait: one that
// decides no dependency, as most do.
func BenchmarkChangeOfAnAwaitedJob(b *testing.B) {
	for _, waiting := range []int{0, 100, 10_000} {
		x := newDependencyScene(b)
		first := x.suspended("first")
		for i := range waiting {
			x.depends(fmt.Sprint("w", i), "afterok:first")
		}
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.do(func() { x.notify(first) })
			}
		})
	}
}

// BenchmarkEndOfAnAwaitedJob is the end of a job for which so many wait, with the writes of
// all their answers: the owner deletes the job, and it stays until the last is durable.
func BenchmarkEndOfAnAwaitedJob(b *testing.B) {
	for _, waiting := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				x := newDependencyScene(b)
				first := x.suspended("first")
				for i := range waiting {
					x.depends(fmt.Sprint("w", i), "afterany:first afterok:none")
				}
				b.StartTimer()
				x.cancels(first.Job, true)
				if x.work.Jobs["default/first"] != nil {
					b.Fatal("the job stays")
				}
			}
		})
	}
}
