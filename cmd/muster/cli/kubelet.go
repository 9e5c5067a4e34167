package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) kubeletCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "kubelet",
		Short: "Give devices of a host to its kubelet, and take them back",
		Long: "kubelet is about the devices that a host's kubelet hands out to pods, by Muster's device plugin.\n" +
			"docs/kubernetes.md explains it.",
	}, a.kubeletPoolCommand())
}

func (a *app) kubeletPoolCommand() *cobra.Command {
	var change poolChange
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "pool NODE",
		Short: "Show the devices that a host's kubelet hands out; add and remove devices",
		Long: "pool shows the devices of a host that its kubelet hands out to pods, each with its state and the containers or\n" +
			"the work that has it: Free, Lent, Joining or Leaving, or Wished and Removed for an operator's change that the\n" +
			"agent has not reported. --add and --remove change the pool without a restart of the agent: a device that\n" +
			"Muster's work holds joins when that work ends, and a device leaves when no container has it. The change is kept for\n" +
			"the node, and wins over the agent's configuration. pool waits until the devices have joined or left; interrupted,\n" +
			"the change stays.",
		Example: "  muster kubelet pool gpu-07\n  muster kubelet pool gpu-07 --add GPU-8f2a4bd1-5c0e-4a7b-9d3f-1e6c2b7a9d40\n" +
			"  muster kubelet pool gpu-07 --remove GPU-8f2a4bd1-5c0e-4a7b-9d3f-1e6c2b7a9d40 --wait=false",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usagef("--timeout %s is not positive", timeout)
			}
			if err := change.check(); err != nil {
				return err
			}
			names, err := a.named(nodeKind, args)
			if err != nil {
				return err
			}
			if change.isZero() {
				return a.showPool(cmd.Context(), names[0])
			}
			if !wait {
				timeout = 0
			}
			return a.changePool(cmd.Context(), names[0], change, timeout)
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
	cmd.Flags().StringSliceVar(&change.add, "add", nil, "UUIDs of GPUs or MIG instances for the pool, with commas in between")
	cmd.Flags().StringSliceVar(&change.remove, "remove", nil, "UUIDs of GPUs or MIG instances that leave the pool")
	cmd.Flags().BoolVar(&wait, "wait", true, "wait until the devices have joined or left")
	cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "how long to wait for that")
	return cmd
}

// poolChange are the devices that are to join a pool, and those that are to leave it.
type poolChange struct{ add, remove []string }

func (c poolChange) isZero() bool { return len(c.add)+len(c.remove) == 0 }

func (c poolChange) check() error {
	seen := map[string]bool{}
	for _, of := range []struct {
		flag  string
		uuids []string
	}{{"--add", c.add}, {"--remove", c.remove}} {
		for _, uuid := range of.uuids {
			switch given := strings.Join(of.uuids, ","); {
			case strings.TrimSpace(uuid) == "":
				return usagef("%s %q: a UUID is empty; `muster describe node NODE` lists them", of.flag, given)
			case seen[uuid]:
				return usagef("%s %q: %s is given twice", of.flag, given, uuid)
			}
			seen[uuid] = true
		}
	}
	return nil
}

// over is the operators' part of a pool with the change, as a patch. The last wish for a
// device wins.
func (c poolChange) over(p *api.KubeletPool) api.KubeletPatch {
	if p == nil {
		p = &api.KubeletPool{}
	}
	with := func(list, more, less []string) *[]string {
		list = slices.DeleteFunc(slices.Clone(list), func(uuid string) bool { return slices.Contains(less, uuid) || slices.Contains(more, uuid) })
		return new(append(append([]string{}, list...), more...))
	}
	return api.KubeletPatch{Add: with(p.Add, c.add, c.remove), Remove: with(p.Remove, c.remove, c.add)}
}

// changePool changes the pool of a node, and says how far each device is until all have
// joined or left, or the time is over; 0 is no time.
func (a *app) changePool(ctx context.Context, name string, c poolChange, timeout time.Duration) error {
	if err := a.connect(); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, _, err := a.editOne(call, name, func(n *api.Node) (api.NodePatch, string, error) {
		return api.NodePatch{Kubelet: c.over(n.Spec.Kubelet)}, "", nil
	})
	if err != nil {
		return fmt.Errorf("kubelet pool of node %s: %w", name, err)
	}
	told := map[string]string{}
	left := 0
	settled := func(n *api.Node) (bool, error) {
		if n == nil {
			return false, fmt.Errorf("node %s was deleted", name)
		}
		left = 0
		for _, s := range c.progress(n) {
			if !s.done {
				left++
			}
			if a.isTable() && told[s.uuid] != s.text {
				a.printf("%s\n", s.text)
			}
			told[s.uuid] = s.text
		}
		return left == 0, nil
	}
	done, err := settled(n)
	if err == nil && !done && timeout > 0 {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		n, err = a.client.Nodes().WaitFor(ctx, name, settled)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("kubelet pool of node %s: devices that have not joined or left yet: %d; the change stays, and `muster kubelet pool %s` shows the rest", name, left, name)
	case err != nil:
		return fmt.Errorf("kubelet pool of node %s: %w", name, err)
	case !a.isTable():
		return a.print([]object{objectOf(api.KindNode, n)}, n)
	}
	return nil
}

// poolStep is how far one device is.
type poolStep struct {
	uuid, text string
	done       bool
}

// progress is how far each device of the change is, by the agent's last report.
func (c poolChange) progress(n *api.Node) []poolStep {
	reported := map[string]*api.KubeletDevice{}
	if n.Status.Kubelet != nil {
		for i := range n.Status.Kubelet.Devices {
			d := &n.Status.Kubelet.Devices[i]
			reported[d.UUID] = d
		}
	}
	var steps []poolStep
	for _, uuid := range c.add {
		s := poolStep{uuid: uuid, text: uuid + ": the agent has not reported the device in the pool yet"}
		if d := reported[uuid]; d != nil {
			s.done = d.State == "Free" || d.State == "Lent"
			s.text = uuid + " " + poolState(d)
		}
		steps = append(steps, s)
	}
	for _, uuid := range c.remove {
		s := poolStep{uuid: uuid, text: uuid + " is not in the pool", done: true}
		if n.Status.Kubelet == nil { // without a pool, or until the first report after a registration
			s.text = uuid + " is in no pool that the agent has reported; the change counts for later reports"
		}
		if d := reported[uuid]; d != nil {
			s.done, s.text = false, uuid+": the agent has not reported yet that the device leaves"
			if d.State == "Leaving" {
				s.text = uuid + " " + poolState(d)
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// poolState says where a device is, behind its name.
func poolState(d *api.KubeletDevice) string {
	switch {
	case d.State == "Joining" && d.Holder != "":
		return "joins the pool when the device is free: " + d.Holder + " has it"
	case d.State == "Joining":
		return "joins the pool when the host shows the device, and shows it free"
	case d.State == "Leaving" && len(d.Containers) > 0:
		return "leaves the pool when no container has it: " + containersOf(d)
	case d.State == "Leaving":
		return "leaves the pool when the kubelet's lists have shown that no container has it (up to 50 s)"
	case d.State == "Lent":
		return "is in the pool, and is lent"
	}
	return "is in the pool, and is free"
}

func containersOf(d *api.KubeletDevice) string {
	var list []string
	for _, c := range d.Containers {
		list = append(list, c.Namespace+"/"+c.Pod+"/"+c.Container)
	}
	return strings.Join(list, ", ")
}

// showPool shows the pool of a node.
func (a *app) showPool(ctx context.Context, name string) error {
	if err := a.connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := a.client.Nodes().Get(ctx, name)
	switch {
	case err != nil:
		return fmt.Errorf("kubelet pool of node %s: %w", name, err)
	case !a.isTable():
		return a.print([]object{objectOf(api.KindNode, n)}, n)
	}
	t := poolTable(n)
	if len(t.rows) == 1 {
		a.notef("node %s gives no device to a kubelet; `muster kubelet pool %s --add UUID` does\n", name, name)
		return nil
	}
	t.write(a.Stdout, "")
	if n.Status.Kubelet != nil && n.Status.Kubelet.MoreContainers > 0 {
		a.printf("%d more containers have devices of the pool\n", n.Status.Kubelet.MoreContainers)
	}
	return nil
}

// poolTable are the devices of the pool, and those that are to join or to leave it.
func poolTable(n *api.Node) *table {
	t := newTable("DEVICE", "STATE", "HELD BY", "SINCE", "FROM")
	wish := n.Spec.Kubelet
	if wish == nil {
		wish = &api.KubeletPool{}
	}
	from := func(uuid string, configured bool) string {
		switch {
		case slices.Contains(wish.Add, uuid):
			return "added by an operator"
		case slices.Contains(wish.Remove, uuid):
			return "removed by an operator"
		case configured:
			return "the agent's configuration"
		}
		return ""
	}
	seen := map[string]bool{}
	if n.Status.Kubelet != nil {
		for i := range n.Status.Kubelet.Devices {
			d := &n.Status.Kubelet.Devices[i]
			seen[d.UUID] = true
			holder := containersOf(d)
			if holder == "" {
				holder = d.Holder
			}
			t.add(d.UUID, d.State, holder, d.Since, from(d.UUID, d.Configured))
		}
	}
	for _, uuid := range wish.Add {
		if !seen[uuid] {
			t.add(uuid, "Wished", "", "", from(uuid, false))
		}
	}
	for _, uuid := range wish.Remove {
		if !seen[uuid] {
			t.add(uuid, "Removed", "", "", from(uuid, false))
		}
	}
	return t
}
