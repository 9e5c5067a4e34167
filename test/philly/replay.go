package philly

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/lead"
)

// Result is what a replay has counted and measured.
type Result struct {
	Jobs, Begun, Ended int
	Makespan           time.Duration   // from the first arrival to the last end
	Delays             []time.Duration // from arrival to begin, of the jobs that have begun, ascending
	LongestQueue       int
	// Work of the leader: inputs, passes, the units that passes tried, and the units
	// that housekeeping judged.
	Inputs, Passes, Trials, Judgements uint64
	Wall, CPU                          time.Duration
}

// String is the result in lines.
func (r Result) String() string {
	var sum time.Duration
	for _, d := range r.Delays {
		sum += d
	}
	mean := sum / time.Duration(max(1, len(r.Delays)))
	return fmt.Sprintf("%d arrivals and ends, %d allocations, %d ends, makespan %.1f days, queueing delay mean %.1f h, p50 %v, p99 %.1f h, at most %d waiting, %d inputs, %d passes, %.2f trials/end, %d judgements, wall %.2f s, CPU %.2f s",
		r.Jobs+r.Ended, r.Begun, r.Ended, r.Makespan.Hours()/24, mean.Hours(), r.Percentile(50), r.Percentile(99).Hours(), r.LongestQueue,
		r.Inputs, r.Passes, float64(r.Trials)/float64(max(1, r.Ended)), r.Judgements, r.Wall.Seconds(), r.CPU.Seconds())
}

// Percentile is a percentile of the delays; 0 without any.
func (r Result) Percentile(p int) time.Duration {
	if len(r.Delays) == 0 {
		return 0
	}
	return r.Delays[min(len(r.Delays)-1, len(r.Delays)*p/100)]
}

// replay is a replay under way.
type replay struct {
	cluster *alone.Cluster
	jobs    []Job
	start   time.Time
	ends    ends
	result  Result
}

// Replay plays jobs to a leader with so many hosts of 8 GPUs. Look is called after
// each arrival and each end, when nothing is left to be done; nil for nobody.
func Replay(jobs []Job, hosts int, look func(n int, c *alone.Cluster) error) (Result, error) {
	r := &replay{jobs: jobs, start: time.Date(2017, 9, 4, 10, 30, 41, 0, time.UTC), result: Result{Jobs: len(jobs)}}
	rules := lead.Rules{NamespaceAllocations: 1 << 20, Namespaces: map[string]lead.Namespace{}}
	for _, j := range jobs {
		rules.Namespaces[namespaceOf(j)] = lead.Namespace{Admission: "queue"}
	}
	r.cluster = alone.New(alone.Options{Nodes: hosts, Rules: rules, Begun: r.begin, Around: r.count}, r.start)
	wall, cpu := time.Now(), processorTime()
	err := r.run(look)
	r.result.Wall, r.result.CPU = time.Since(wall), processorTime()-cpu
	r.result.Trials = r.cluster.Leader().Efforts().Trials
	slices.Sort(r.result.Delays)
	return r.result, err
}

// count counts the calls of the leader.
func (r *replay) count(in lead.Input, call func()) {
	if r.cluster == nil { // at its start
		call()
		return
	}
	before := r.cluster.Leader().Efforts().Judgements
	call()
	switch in.(type) {
	case nil:
		r.result.Passes++
		return
	case lead.SecondPassed:
		r.result.Judgements += r.cluster.Leader().Efforts().Judgements - before
	}
	r.result.Inputs++
}

// run carries out arrivals and ends in the order of their times, ends first.
func (r *replay) run(look func(n int, c *alone.Cluster) error) error {
	for n, next := 0, 0; next < len(r.jobs) || len(r.ends) > 0; n++ {
		if next == len(r.jobs) || len(r.ends) > 0 && !r.ends[0].at.After(r.start.Add(r.jobs[next].Arrival)) {
			if err := r.end(heap.Pop(&r.ends).(end)); err != nil {
				return err
			}
		} else {
			if err := r.arrive(next); err != nil {
				return err
			}
			next++
		}
		_, _, _, queued := r.cluster.Leader().Sizes()
		r.result.LongestQueue = max(r.result.LongestQueue, queued)
		if look == nil {
			continue
		}
		if err := look(n, r.cluster); err != nil {
			return fmt.Errorf("after %d arrivals and ends: %w", n+1, err)
		}
	}
	return nil
}

// arrive submits a job: a gang where it has several members.
func (r *replay) arrive(number int) error {
	j := r.jobs[number]
	r.cluster.AdvanceTo(r.start.Add(j.Arrival))
	members, gpus := j.members()
	name := fmt.Sprint("j", number)
	spec := fmt.Sprintf(`"resources":{"requests":{"nvidia.com/gpu":"%d"}}`, gpus)
	if members == 1 {
		document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{%s}}`, name, spec)
		doc, status := api.DecodeAllocation(document)
		if status != nil {
			return status
		}
		return r.ask(lead.CreateAllocation{Submitted: lead.Submitted{Namespace: namespaceOf(j), Document: document}, Document: doc})
	}
	document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"parallelism":%d,"template":{"spec":{%s,"scheduling":{"gangScheduling":{"minMembers":%d}}}}}}`, name, members, spec, members)
	doc, status := api.DecodeJob(document)
	if status != nil {
		return status
	}
	return r.ask(lead.CreateJob{Submitted: lead.Submitted{Namespace: namespaceOf(j), Document: document}, Document: doc})
}

// begin notes that a job runs.
func (r *replay) begin(path string) {
	var number int
	parts := strings.Split(path, "/")
	if _, err := fmt.Sscanf(parts[2], "j%d", &number); err != nil {
		panic(fmt.Sprintf("philly: the path %s: %v", path, err))
	}
	now := r.cluster.Now()
	r.result.Begun++
	r.result.Delays = append(r.result.Delays, now.Sub(r.start.Add(r.jobs[number].Arrival)))
	heap.Push(&r.ends, end{now.Add(r.jobs[number].Duration), number})
}

// end deletes a job that has run for its duration.
func (r *replay) end(e end) error {
	r.cluster.AdvanceTo(e.at)
	r.result.Ended++
	r.result.Makespan = e.at.Sub(r.start.Add(r.jobs[0].Arrival))
	j, name, options := r.jobs[e.job], fmt.Sprint("j", e.job), api.DeleteOptions{GracePeriodSeconds: new(int64)}
	if members, _ := j.members(); members > 1 {
		return r.ask(lead.EndJob{Namespace: namespaceOf(j), Name: name, Options: options, Remove: true})
	}
	return r.ask(lead.DeleteAllocation{Namespace: namespaceOf(j), Name: name, Options: options})
}

func (r *replay) ask(request lead.Request) error {
	if _, status := r.cluster.Ask(request); status != nil {
		return status
	}
	return nil
}

// namespaceOf is a tenant's; a namespace begins with a letter.
func namespaceOf(j Job) string { return "vc-" + j.Tenant }

// end is when a job has run for its duration.
type end struct {
	at  time.Time
	job int
}

// ends implements heap.Interface: the earliest first, and of these the earlier job.
type ends []end

func (e ends) Len() int { return len(e) }

func (e ends) Less(i, j int) bool {
	if c := e[i].at.Compare(e[j].at); c != 0 {
		return c < 0
	}
	return e[i].job < e[j].job
}

func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e *ends) Push(x any) { *e = append(*e, x.(end)) }

func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// processorTime is the process' so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
