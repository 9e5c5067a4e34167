package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
)

// topInterval is the default time between two pictures, minTopInterval and
// maxTopInterval bound it: each picture is a few requests.
const (
	topInterval    = 2 * time.Second
	minTopInterval = time.Second
	maxTopInterval = time.Hour
)

// topDocument is one picture of the cluster.
type topDocument struct {
	// Time is the time of the program's host.
	Time   string             `json:"time"`
	Nodes  []topNode          `json:"nodes,omitempty"`
	Queues []api.QueueNumbers `json:"queues,omitempty"`
	// Jobs are those that have not ended, with --jobs.
	Jobs []topJob `json:"jobs,omitempty"`
}

// topNode is a node with its devices.
type topNode struct {
	Name  string                   `json:"name"`
	Phase string                   `json:"phase"`
	Usage map[resource.Name]string `json:"usage,omitempty"`
	Free  map[resource.Name]string `json:"available,omitempty"`
	GPUs  []topDevice              `json:"gpus,omitempty"`
}

// topDevice is a GPU or a MIG instance.
type topDevice struct {
	// Name is the device's index, and "3:1" the second instance of device 3.
	Name         string `json:"name"`
	UUID         string `json:"uuid"`
	Model        string `json:"model"`
	NUMANode     int    `json:"numaNode"`
	UsePercent   *int   `json:"usePercent,omitempty"`
	MemoryUsed   string `json:"memoryUsed,omitempty"`
	Memory       string `json:"memory,omitempty"`
	Health       string `json:"health"`
	HealthReason string `json:"healthReason,omitempty"`
	// Owners are the allocations on the device that the caller may see.
	Owners []string `json:"owners,omitempty"`
	// Taken says that somebody else has the device or a part of it.
	Taken bool `json:"taken,omitempty"`
}

// topJob is a job that has not ended.
type topJob struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Queue     string         `json:"queue,omitempty"`
	Phase     api.Phase      `json:"phase"`
	Active    int            `json:"active"`
	Members   int            `json:"members"`
	Use       *api.MemberUse `json:"use,omitempty"` // the sum of the members
}

func (a *app) topCommand() *cobra.Command {
	var jobs, once bool
	interval := topInterval
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show nodes and GPUs with their owners, use and health, as they change",
		Long: "top shows each GPU with the allocation that has it, its use, memory and health, and the queues. On a\n" +
			"terminal the picture is made anew until Ctrl-C; elsewhere, and with -o json, there is one. A GPU of\n" +
			"another tenant shows as taken. With --jobs the lines are the jobs that have not ended, with the measured\n" +
			"use of their members. The values are those of the last reports of the nodes, 15 s to a minute old, and\n" +
			"older where many nodes report.",
		Example: "  muster top\n  muster top -A --jobs\n  muster top -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < minTopInterval || interval > maxTopInterval {
				return usagef("--interval %s is outside %s..%s", interval, minTopInterval, maxTopInterval)
			}
			if a.output == "name" {
				return usagef("-o name: a picture of the cluster has no names; want table, wide, json or yaml")
			}
			if err := a.connect(); err != nil {
				return err
			}
			live := !once && a.isTable() && isTerminal(a.Stdout)
			return a.top(cmd.Context(), jobs, live, interval)
		},
	}
	cmd.Flags().BoolVar(&jobs, "jobs", false, "show the jobs that have not ended instead of the nodes")
	cmd.Flags().BoolVar(&once, "once", false, "show one picture on a terminal too")
	cmd.Flags().DurationVar(&interval, "interval", interval, "time between two pictures, 1s to 1h")
	return cmd
}

// top shows one picture, or one after the other until ctx ends.
func (a *app) top(ctx context.Context, jobs, live bool, interval time.Duration) error {
	next := time.NewTicker(interval)
	defer next.Stop()
	for {
		document, err := a.lookTop(ctx, jobs)
		switch {
		case live && ctx.Err() != nil:
			return nil // interrupted, which is how it ends
		case err != nil:
			return err
		case !a.isTable():
			return a.encode(document)
		case !live:
			document.write(a.Stdout, jobs)
			return nil
		}
		a.redraw(document, jobs)
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
		if _, broken := unwritten(a.Stdout); broken {
			return nil
		}
	}
}

// redraw replaces the picture on the terminal, cut to the terminal's height.
func (a *app) redraw(document *topDocument, jobs bool) {
	var text bytes.Buffer
	document.write(&text, jobs)
	lines := bytes.SplitAfter(text.Bytes(), []byte("\n"))
	if rows := terminalRows(a.Stdout); rows > 1 && len(lines) > rows {
		lines = append(slices.Clone(lines[:rows-2]), fmt.Appendf(nil, "… and %d lines more\n", len(lines)-rows+1))
	}
	if v, is := a.Stdout.(*visible); is {
		_, _ = io.WriteString(v.raw(), "\x1b[H\x1b[2J") // to the upper left corner, and all is erased
	}
	_, _ = a.Stdout.Write(bytes.Join(lines, nil))
}

// terminalRows is the height of a terminal, 0 where it is not known.
func terminalRows(stream any) int {
	if v, is := stream.(*visible); is {
		stream = v.to
	}
	f, is := stream.(interface{ Fd() uintptr })
	if !is {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}

// lookTop asks for everything in one picture.
func (a *app) lookTop(ctx context.Context, jobs bool) (*topDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d := &topDocument{Time: time.Now().UTC().Format(time.RFC3339)}
	queues, err := a.client.Metrics().Queues(ctx)
	if err != nil {
		return nil, err
	}
	d.Queues = queues.Queues
	if jobs {
		for j, err := range a.client.Jobs(a.listNamespace()).All(ctx, sdk.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			if !j.Status.Phase.Ended() {
				d.Jobs = append(d.Jobs, topJobOf(j))
			}
		}
		return d, nil
	}
	owners := map[string][]string{} // by UUID
	for o, err := range a.client.Allocations(a.listNamespace()).All(ctx, sdk.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		for _, uuid := range heldUUIDs(o) {
			owners[uuid] = append(owners[uuid], o.Metadata.Namespace+"/"+o.Metadata.Name)
		}
	}
	for n, err := range a.client.Nodes().All(ctx, sdk.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		d.Nodes = append(d.Nodes, topNodeOf(n, owners))
	}
	return d, nil
}

// heldUUIDs are the devices and instances that an allocation has.
func heldUUIDs(o *api.Allocation) (list []string) {
	if o.Status.Assignment == nil {
		return nil
	}
	for _, g := range o.Status.Assignment.GPUs {
		list = append(list, g.UUID)
	}
	for _, m := range o.Status.Assignment.MIG {
		list = append(list, m.UUID)
	}
	return list
}

func topNodeOf(n *api.Node, owners map[string][]string) topNode {
	t := topNode{Name: n.Metadata.Name, Phase: string(n.Status.Phase), Usage: n.Status.Usage, Free: n.Status.Available}
	for _, d := range n.Status.Devices {
		device := topDevice{
			Name: strconv.Itoa(d.Index), UUID: d.UUID, Model: d.Model, NUMANode: d.NUMANode, UsePercent: d.UsePercent,
			MemoryUsed: d.MemoryUsed, Memory: d.Memory, Health: d.Health, HealthReason: d.HealthReason, Owners: owners[d.UUID],
		}
		device.Taken = d.MIG == nil && d.Free < resource.WholeDevice && len(device.Owners) == 0
		t.GPUs = append(t.GPUs, device)
		if d.MIG == nil {
			continue
		}
		for i, m := range d.MIG.Instances {
			t.GPUs = append(t.GPUs, topDevice{
				Name: fmt.Sprintf("%d:%d", d.Index, i), UUID: m.UUID, Model: m.Profile, NUMANode: d.NUMANode, UsePercent: m.UsePercent,
				MemoryUsed: m.MemoryUsed, Memory: m.Memory, Health: d.Health, HealthReason: d.HealthReason, Owners: owners[m.UUID],
				Taken: !m.Free && len(owners[m.UUID]) == 0,
			})
		}
	}
	return t
}

// topJobOf adds up the use of a job's members.
func topJobOf(j *api.Job) topJob {
	t := topJob{Namespace: j.Metadata.Namespace, Name: j.Metadata.Name, Queue: j.Spec.Queue, Phase: j.Status.Phase, Active: int(j.Status.Active), Members: len(j.Status.Allocations)}
	devices := map[string]*api.MemberDeviceUse{}
	for _, m := range j.Status.Allocations {
		u := m.Use
		if u == nil {
			continue
		}
		t.Use = cmp.Or(t.Use, &api.MemberUse{})
		t.Use.CPUMillis += u.CPUMillis
		t.Use.MemoryBytes += u.MemoryBytes
		t.Use.PeakMemoryBytes += u.PeakMemoryBytes
		if u.OOMKills != nil {
			kills := *u.OOMKills
			if t.Use.OOMKills != nil {
				kills += *t.Use.OOMKills
			}
			t.Use.OOMKills = &kills
		}
		for _, d := range u.Devices {
			if devices[d.UUID] == nil {
				devices[d.UUID] = &api.MemberDeviceUse{UUID: d.UUID}
			}
			sum := devices[d.UUID]
			sum.BusyMillis, sum.MemoryBytes, sum.PeakMemoryBytes = sum.BusyMillis+d.BusyMillis, sum.MemoryBytes+d.MemoryBytes, sum.PeakMemoryBytes+d.PeakMemoryBytes
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(devices)) {
		t.Use.Devices = append(t.Use.Devices, *devices[uuid])
	}
	return t
}
