package grace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/test/rig"
)

// world is a cluster of two nodes whose 8 GPUs each are held by the job "gang", one member
// on each node.
type world struct {
	*testing.T
	c     *rig.Cluster
	begun time.Time
}

func seconds(n int64) *int64 { return &n }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// at waits until so many seconds have passed since the world began.
func (w *world) at(second int) {
	<-time.NewTimer(time.Until(w.begun.Add(time.Duration(second) * time.Second))).C
}

func (w *world) delete(grace *int64) {
	_, err := w.c.Leader().DeleteJob(w.Context(), rig.Namespace, "gang", api.DeleteOptions{GracePeriodSeconds: grace})
	w.must(err)
}

func (w *world) cancel(grace *int64) {
	_, err := w.c.Leader().CancelJob(w.Context(), rig.Namespace, "gang", api.DeleteOptions{GracePeriodSeconds: grace})
	w.must(err)
}

func (w *world) evict(grace int64) {
	_, _, err := w.c.Leader().Evict(w.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "gang-0", GraceSeconds: &grace})
	w.must(err)
}

// free returns the second at which the last device is free, at least 0.
func (w *world) free() int {
	w.c.Eventually("the agents hold nothing of the gang", func() bool {
		for _, a := range w.c.Agents() {
			s, up := a.Snapshot()
			if !up || len(s.Grants) > 0 {
				return false
			}
		}
		return true
	})
	return int(time.Since(w.begun) / time.Second)
}

// TestAGraceThatIsWrittenIsKept: the end of unattached work, and the second, with two more
// at most, at which the devices are free on both nodes.
func TestAGraceThatIsWrittenIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world)
		want int
	}{
		"a deletion without a grace":        {func(w *world) { w.delete(nil) }, 0},
		"a deletion with 0":                 {func(w *world) { w.delete(seconds(0)) }, 0},
		"a deletion with 40":                {func(w *world) { w.delete(seconds(40)) }, 40},
		"a cancellation without a grace":    {func(w *world) { w.cancel(nil) }, 0},
		"a cancellation with 60":            {func(w *world) { w.cancel(seconds(60)) }, 60},
		"an eviction with 50":               {func(w *world) { w.evict(50); w.at(5); w.cancel(nil) }, 50},
		"a second, shorter end":             {func(w *world) { w.cancel(seconds(40)); w.at(5); w.delete(seconds(10)) }, 40},
		"a second, longer end":              {func(w *world) { w.cancel(seconds(20)); w.at(5); w.delete(seconds(90)) }, 20},
		"an end makes no eviction longer":   {func(w *world) { w.evict(20); w.at(5); w.delete(seconds(90)) }, 20},
		"the agents start anew meanwhile":   {func(w *world) { w.delete(seconds(40)); w.at(10); w.restart(); w.at(20); w.shown() }, 40},
		"the hosts start anew meanwhile":    {func(w *world) { w.delete(seconds(90)); w.at(10); w.reboot() }, 10},
		"another leader is elected":         {func(w *world) { w.delete(seconds(40)); w.at(10); w.elect() }, 40},
		"the agents hear of the end late":   {func(w *world) { w.stop(); w.delete(seconds(40)); w.at(10); w.start() }, 50},
		"another leader finds it in a job":  {func(w *world) { w.stop(); w.cancel(seconds(40)); w.elect(); w.at(10); w.start() }, 50},
		"work of higher priority waits too": {func(w *world) { w.delete(seconds(40)); w.urge() }, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := rig.New(t, rig.Options{})
				k := cluster.Bring(2)
				f := cluster.StartCoordinator("c2")
				cluster.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
				if _, _, err := k.Job(t.Context(), rig.Submission{Name: "gang", GPUs: 8, Members: 2, Gang: 2, Wait: time.Minute}); err != nil {
					t.Fatal(err)
				}
				cluster.Converge()
				w := &world{t, cluster, time.Now()}
				c.end(w)
				if got := w.free(); got < c.want || got > c.want+2 {
					t.Errorf("the devices are free after %d s, want %d", got, c.want)
				}
				cluster.Converge()
			})
		})
	}
}

func (w *world) each(do func(*rig.Agent)) {
	for _, a := range w.c.Agents() {
		do(a)
	}
}

func (w *world) stop()    { w.each((*rig.Agent).Stop) }
func (w *world) start()   { w.each((*rig.Agent).Start) }
func (w *world) restart() { w.each((*rig.Agent).Restart) }
func (w *world) reboot()  { w.each((*rig.Agent).Reboot) }

// shown awaits the notice in the files of each host.
func (w *world) shown() {
	w.each(func(a *rig.Agent) {
		w.c.Eventually("the files of the gang say that it ends", func() bool {
			end, ok := a.Ending()
			return ok && end.GraceSeconds == 40 && end.UptimeSeconds == w.begun.Unix()+40
		})
	})
}

// elect ends the leader.
func (w *world) elect() {
	was := w.c.Leader()
	was.Crash()
	w.c.Eventually("the follower leads", func() bool { l := w.c.Leader(); return l != nil && l != was })
}

// urge submits work of all GPUs of a node, with a priority above the gang's, and awaits its start.
func (w *world) urge() {
	_, _, err := w.c.Leader().Allocate(w.Context(), rig.Submission{Name: "urgent", GPUs: 8, Priority: 100, Policy: api.PreemptLowerPriority})
	w.must(err)
	w.at(39)
	a, err := w.c.Leader().GetAllocation(w.Context(), rig.Namespace, "urgent", 0)
	w.must(err)
	if a.Status.Phase != api.Pending {
		w.Errorf("within the grace the urgent work is %s, want Pending", a.Status.Phase)
	}
	w.c.Eventually("the urgent work runs", func() bool {
		a, err := w.c.Leader().GetAllocation(w.Context(), rig.Namespace, "urgent", 0)
		return err == nil && a.Status.Phase == api.Running
	})
	_, err = w.c.Leader().DeleteAllocation(w.Context(), rig.Namespace, "urgent", api.DeleteOptions{})
	w.must(err)
}
