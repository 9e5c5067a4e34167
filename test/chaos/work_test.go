package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
)

var works = flag.Int("chaos.works", 3, "rounds of kills of agents, coordinators, supervisors and commands while a job runs")

// workMembers are the members of the job of a round.
const workMembers = 3

// TestKillingWhatRunsWork kills the agents, the coordinators, the supervisors and the commands
// of a job in drawn orders and at drawn moments, from the submission on. Whatever the order:
// each start has one record, at most one start is in a folder, the job ends, once, each
// member's end is that of its folder, and no process is left.
func TestKillingWhatRunsWork(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not permitted here: root alone reads the folders of the members, and names their users")
	}
	lot := dice(t, 7)
	c := cluster.Start(t, cluster.Options{
		Etcd: 1, Agents: 2, Quiet: true, CoordinatorSettings: cluster.Settings{"startsWork": true},
		AgentSettings: func(resource.NodeID) cluster.Settings {
			return cluster.Settings{"work": cluster.Settings{"users": map[string]string{"*": "root"}, "allowRoot": true}}
		},
	})
	var at []string
	for _, p := range c.Coordinators {
		at = append(at, "https://"+p.Address(cluster.RESTPort))
	}
	k, err := sdk.NewClient(sdk.Config{Endpoint: strings.Join(at, ","), Token: c.AdminToken(), CAFile: c.CAFile()})
	if err != nil {
		t.Fatal(err)
	}
	w := &workKills{t: t, c: c, jobs: k.Jobs("default"), lot: lot, dir: t.TempDir(), done: map[string]int{}, ended: map[string]string{}}
	for round := range *works {
		w.round(fmt.Sprintf("w-%d", round))
	}
	w.stayEnded()
	t.Logf("%d rounds: %v", *works, w.done)
}

// workKills is the state of the test.
type workKills struct {
	t     *testing.T
	c     *cluster.Cluster
	jobs  sdk.Jobs
	lot   *rand.Rand
	dir   string            // of the files in which commands note their starts
	done  map[string]int    // kills by victim
	ended map[string]string // the resourceVersion of each job at its end
}

// round runs one job under some kills.
func (w *workKills) round(name string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*cluster.Patience)
	defer cancel()
	seconds := fmt.Sprintf("%d.%d", w.lot.IntN(2), w.lot.IntN(10))
	script := "echo $MUSTER_RUN >> " + filepath.Join(w.dir, name) + "; sleep 3600 & setsid sleep 3600 & sleep " + seconds
	members, none := int32(workMembers), int32(0)
	job := &api.Job{Metadata: api.ObjectMeta{Name: name}, Spec: api.JobSpec{
		Parallelism: &members, BackoffLimit: &none, OnMemberFailure: "Ignore",
		Template: api.Template{Spec: api.AllocationSpec{
			Resources: api.Requirements{Requests: map[resource.Name]string{resource.CPU: "100m"}}, Command: []string{"/bin/sh", "-c", script},
		}},
	}}
	if _, err := w.jobs.Create(ctx, job, sdk.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	var order []string
	for range 1 + w.lot.IntN(4) {
		hold(time.Duration(w.lot.IntN(400)) * time.Millisecond)
		what := []string{"the leader", "a follower", "an agent", "a supervisor", "a command"}[w.lot.IntN(5)]
		if w.kill(name, what) {
			order = append(order, what)
			w.done[what]++
		}
	}
	w.check(ctx, name, strings.Join(order, ", "))
}

// kill kills something, and reports whether there was such a thing.
func (w *workKills) kill(name, what string) bool {
	switch what {
	case "a supervisor", "a command":
		folders := slices.Collect(maps.Keys(w.starts(name)))
		if len(folders) == 0 {
			return false
		}
		slices.Sort(folders)
		file := map[string]string{"a supervisor": "begun", "a command": "started"}[what]
		var p struct{ PID int }
		folder := folders[w.lot.IntN(len(folders))]
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || json.Unmarshal(text, &p) != nil || !belongsTo(p.PID, folder) {
			return false // it is not there yet, or has ended
		}
		return syscall.Kill(p.PID, syscall.SIGKILL) == nil
	default:
		kill(w.c, what, w.lot)
		return true
	}
}

// belongsTo reports whether a process is the supervisor of a folder, or has its mark.
func belongsTo(pid int, folder string) bool {
	for _, file := range []string{"cmdline", "environ"} {
		text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
		if bytes.Contains(text, []byte(folder)) {
			return true
		}
	}
	return false
}

// starts are the folders in which a job's command was started, and how often.
func (w *workKills) starts(name string) map[string]int {
	all := map[string]int{}
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return all
	} else if err != nil {
		w.t.Fatal(err)
	}
	for folder := range strings.Lines(string(text)) {
		if strings.HasSuffix(folder, "\n") { // else the line is being written
			all[strings.TrimSpace(folder)]++
		}
	}
	return all
}

// exit is the file of an end.
type exit struct {
	Code   int32
	Reason string
}

// check waits for the end of a job, and compares it with the folders on the hosts.
func (w *workKills) check(ctx context.Context, name, order string) {
	w.t.Helper()
	var j *api.Job
	programs.Eventually(w.t, 2*cluster.Patience, "the end of "+name+" after kills of "+order, func() (err error) {
		if j, err = w.jobs.Get(ctx, name, sdk.GetOptions{}); err == nil && !j.Status.Phase.Ended() {
			err = fmt.Errorf("%s is %s: %s", name, j.Status.Phase, j.Status.Message)
		}
		return err
	})
	starts := w.starts(name)
	byMember := map[string]exit{} // by transaction and member, which the folder's name has
	for folder, times := range starts {
		if times != 1 {
			w.t.Errorf("%s, after kills of %s: %d starts in %s", name, order, times, folder)
		}
		text, err := os.ReadFile(filepath.Join(folder, "exit"))
		var e exit
		if err != nil || json.Unmarshal(text, &e) != nil {
			w.t.Errorf("%s, after kills of %s: no end in %s: %v", name, order, folder, err)
		}
		byMember[filepath.Base(folder)] = e
		if left := withMark(folder); len(left) > 0 {
			w.t.Errorf("%s, after kills of %s: processes %v of %s are left", name, order, left, folder)
		}
	}
	told := map[exit]int{}
	for _, m := range j.Status.Allocations {
		if m.ExitCode == nil || m.ExitReason == "" {
			w.t.Errorf("%s, after kills of %s: member %s has ended without a word: %+v", name, order, m.Name, m)
			continue
		}
		told[exit{*m.ExitCode, m.ExitReason}]++
		if *m.ExitCode == 0 && m.ExitReason != "Completed" {
			w.t.Errorf("%s, after kills of %s: member %s has succeeded as %s", name, order, m.Name, m.ExitReason)
		}
	}
	for folder, e := range byMember {
		if told[e]--; told[e] < 0 {
			w.t.Errorf("%s, after kills of %s: the end %+v of %s is not among those of the job: %+v", name, order, e, folder, j.Status.Allocations)
		}
	}
	if len(j.Status.Allocations) != workMembers || j.Status.Succeeded+j.Status.Failed != workMembers {
		w.t.Errorf("%s, after kills of %s: %d members, %d succeeded and %d failed, want %d in all", name, order, len(j.Status.Allocations), j.Status.Succeeded, j.Status.Failed, workMembers)
	}
	w.ended[name] = j.Metadata.ResourceVersion
}

// withMark lists the processes that a folder's member has started.
func withMark(folder string) (list []string) {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	mark := []byte("MUSTER_RUN=" + folder + "\x00")
	for _, path := range entries {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, mark) {
			list = append(list, strings.Split(path, "/")[2])
		}
	}
	return list
}

// stayEnded checks that no job has changed after its end: no end is told twice.
func (w *workKills) stayEnded() {
	w.t.Helper()
	for name, version := range w.ended {
		j, err := w.jobs.Get(w.t.Context(), name, sdk.GetOptions{})
		if err != nil || j.Metadata.ResourceVersion != version || !j.Status.Phase.Ended() {
			w.t.Errorf("%s has changed after its end, from revision %s: %+v, %v", name, version, j, err)
		}
	}
}
