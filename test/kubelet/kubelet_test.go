// Package kubelet_test runs the agent's device plugin under the device manager and the
// PodResources server of the real kubelet (test/kubelet/manager, a module of its own),
// beside Muster's own work, and kills both sides in every order.
package kubelet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
)

var (
	rounds = flag.Int("kubelet.rounds", 11, "how often the agent and the kubelet are restarted, or the pool changes; by hand 200")
	seed   = flag.Uint64("kubelet.seed", uint64(time.Now().UnixNano()), "decides the order, and what pods do")
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

const (
	gpus     = 8
	pool     = 4 // of the GPUs
	name     = "muster.io/gpu"
	kubelets = "/var/lib/kubelet"
	sockets  = kubelets + "/device-plugins"
)

// reply is the manager's answer to one line.
type reply struct {
	Error   string            `json:"error"`
	Units   []string          `json:"units"`
	Env     map[string]string `json:"env"`
	Healthy map[string]int64  `json:"healthy"`
}

// kubelet is the manager's process, and what its pods have.
type kubelet struct {
	t       *testing.T
	program string
	pods    map[string][]string // units by pod

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// build builds the manager; a first build takes minutes.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := programs.BuildModule("test/kubelet/manager", dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "manager")
}

func (k *kubelet) start() {
	k.t.Helper()
	k.cmd = exec.Command(k.program, "-pods", kubelets+"/pods.json")
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(filepath.Join(filepath.Dir(k.program), "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		k.t.Fatal(err)
	}
	defer log.Close()
	k.cmd.Stderr = log
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		k.t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	k.out = bufio.NewScanner(out)
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kubelet) kill() {
	if k.cmd != nil {
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
		k.cmd = nil
	}
}

// do sends one command and reads its answer.
func (k *kubelet) do(op, pod string, count int) (reply, error) {
	line, err := json.Marshal(map[string]any{"op": op, "pod": map[string]any{"name": pod, "resource": name, "count": count}})
	if err != nil {
		return reply{}, err
	}
	if _, err := k.in.Write(append(line, '\n')); err != nil {
		return reply{}, err
	}
	var r reply
	if !k.out.Scan() {
		return r, errors.New("the manager has ended")
	}
	if err := json.Unmarshal(k.out.Bytes(), &r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// run starts a pod. The kubelet may refuse it.
func (k *kubelet) run(pod string, count int) error {
	r, err := k.do("run", pod, count)
	if err != nil {
		return err
	}
	slices.Sort(r.Units)
	visible := strings.Split(r.Env["NVIDIA_VISIBLE_DEVICES"], ",")
	slices.Sort(visible)
	if len(r.Units) != count || !slices.Equal(visible, r.Units) {
		k.t.Errorf("pod %s has units %v and sees %v, want %d", pod, r.Units, visible, count)
	}
	for other, units := range k.pods {
		for _, u := range r.Units {
			if slices.Contains(units, u) {
				k.t.Errorf("pods %s and %s both have %s", other, pod, u)
			}
		}
	}
	k.pods[pod] = r.Units
	return nil
}

func (k *kubelet) end(pod string) {
	k.t.Helper()
	if _, err := k.do("end", pod, 0); err != nil {
		k.t.Fatal(err)
	}
	delete(k.pods, pod)
}

// awaitUnits waits until the kubelet has n healthy units.
func (k *kubelet) awaitUnits(n int64) {
	k.t.Helper()
	programs.Eventually(k.t, cluster.Patience, fmt.Sprintf("the kubelet has %d healthy units", n), func() error {
		r, err := k.do("show", "", 0)
		if err == nil && r.Healthy[name] != n {
			err = fmt.Errorf("it has %v", r.Healthy)
		}
		return err
	})
}

// used are all units of pods, ascending.
func (k *kubelet) used() (all []string) {
	for _, units := range k.pods {
		all = append(all, units...)
	}
	slices.Sort(all)
	return all
}

// heldBy asks the agent, which may just start.
func heldBy(t *testing.T, c *cluster.Cluster, a *cluster.Agent) (held map[string][]string) {
	t.Helper()
	programs.Eventually(t, cluster.Patience, "the agent answers", func() (err error) {
		held, err = c.Held(t.Context(), a)
		return err
	})
	return held
}

// operators change the pool of a node, device by device.
type operators struct {
	t                  *testing.T
	client             *cluster.Client
	node               string
	dice               *rand.Rand
	devices            []string // of the node
	configured, wanted []string // in the pool by the agent's configuration, and at present
}

// add puts a device into the pool that Muster's work may have, and remove takes one out
// that a pod may have. One device stays in the pool.
func (o *operators) add() {
	rest := slices.DeleteFunc(slices.Clone(o.devices), func(uuid string) bool { return slices.Contains(o.wanted, uuid) })
	if len(rest) > 0 {
		o.want(append(slices.Clone(o.wanted), rest[o.dice.IntN(len(rest))]))
	}
}

func (o *operators) remove() {
	if len(o.wanted) > 1 {
		at := o.dice.IntN(len(o.wanted))
		o.want(slices.Delete(slices.Clone(o.wanted), at, at+1))
	}
}

// want replaces the operators' part of the pool.
func (o *operators) want(wanted []string) {
	o.t.Helper()
	without := func(list, others []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(uuid string) bool { return slices.Contains(others, uuid) })
	}
	more, less := without(wanted, o.configured), without(o.configured, wanted)
	ctx, cancel := context.WithTimeout(o.t.Context(), cluster.Patience)
	defer cancel()
	if _, err := o.client.PatchNode(ctx, o.node, api.NodePatch{Kubelet: api.KubeletPatch{Add: &more, Remove: &less}}); err != nil {
		o.t.Fatal(err)
	}
	o.wanted = wanted
}

// mustBeOnce checks that no device has two grants, of whatever origin (I1), and that each
// device of a pod is the kubelet's.
func (o *operators) mustBeOnce(what string, held map[string][]string, used []string) {
	o.t.Helper()
	state := map[string]string{}
	for of, list := range held {
		for _, uuid := range list {
			if other := state[uuid]; other != "" {
				o.t.Errorf("%s: %s is %s and %s", what, uuid, other, of)
			}
			state[uuid] = of
		}
	}
	for _, uuid := range used {
		if state[uuid] != "KUBELET" {
			o.t.Errorf("%s: a pod has %s, which is %q for the agent", what, uuid, state[uuid])
		}
	}
}

// TestRestartsInEveryOrder restarts the agent and the kubelet in every order and changes
// the pool beside that, with pods that come and go and Muster's own work on the same host.
// Nothing is given twice, every pod keeps its units, and at the end everything is free
// again.
func TestRestartsInEveryOrder(t *testing.T) {
	cluster.NeedPrivate(t)
	program := build(t)
	// The kubelet's paths are fixed: the test has its own /var/lib.
	if err := syscall.Mount("tmpfs", "/var/lib", "tmpfs", 0, ""); err != nil {
		t.Skipf("not permitted here: a mount over /var/lib: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount("/var/lib", syscall.MNT_DETACH) })
	if err := os.MkdirAll(sockets, 0o750); err != nil {
		t.Fatal(err)
	}
	o := &operators{t: t}
	c := cluster.Start(t, cluster.Options{Etcd: 1, Coordinators: 1, Agents: 1, GPUs: gpus, AgentSettings: func(node resource.NodeID) cluster.Settings {
		o.devices = cluster.Devices(t, node, gpus)
		o.configured, o.node = o.devices[:pool], string(node)
		o.wanted = o.configured
		return cluster.Settings{"kubelet": cluster.Settings{"pool": o.configured}}
	}})
	agent := c.Agents[0]
	k := &kubelet{t: t, program: program, pods: map[string][]string{}}
	t.Cleanup(func() {
		k.kill()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(filepath.Dir(program), "log"))
			t.Logf("the kubelet wrote:\n%s", log[max(0, len(log)-8<<10):])
		}
	})
	k.start()
	k.awaitUnits(pool)
	load := c.StartLoad(cluster.LoadOptions{Prefix: "work", Seed: *seed, Namespaces: []string{"default"}, Pace: 20 * time.Millisecond, Keep: -1})
	t.Logf("seed %d: repeat with -args -kubelet.seed=%d", *seed, *seed)
	dice := rand.New(rand.NewPCG(*seed, 1))
	o.dice, o.client = dice, c.NewClient()
	orders := map[string]func(){
		"the agent":                           func() { agent.Kill(); agent.Start() },
		"the kubelet":                         func() { k.kill(); k.start() },
		"the agent, then the kubelet":         func() { agent.Kill(); k.kill(); agent.Start(); k.start() },
		"the kubelet, then the agent":         func() { k.kill(); agent.Kill(); k.start(); agent.Start() },
		"the agent while the kubelet is away": func() { k.kill(); agent.Kill(); agent.Start(); k.start() },
		"the socket is removed":               func() { _ = os.Remove(sockets + "/muster-muster-io-gpu.sock") },
		"the coordinator": func() {
			c.Coordinators[0].Kill()
			c.Coordinators[0].Start()
		},
		"a device is added":                             o.add,
		"a device is removed":                           o.remove,
		"a device is added while the agent is away":     func() { agent.Kill(); o.add(); agent.Start() },
		"a device is removed while the kubelet is away": func() { k.kill(); o.remove(); k.start() },
	}
	order := slices.Sorted(maps.Keys(orders))
	next := 0
	for round := range *rounds {
		what := order[(round+int(*seed%uint64(len(order))))%len(order)]
		t.Logf("round %d: %s", round, what)
		orders[what]()
		k.awaitUnits(int64(len(o.wanted))) // work that has an added device ends
		for _, pod := range slices.Sorted(maps.Keys(k.pods)) {
			if dice.IntN(2) == 0 {
				k.end(pod)
			}
		}
		for range dice.IntN(3) + 1 {
			next++
			pod, count := fmt.Sprintf("pod-%d", next), dice.IntN(2)+1
			// The kubelet refuses when its units are taken; that is its own account.
			free := 0
			for _, uuid := range o.wanted {
				if !slices.Contains(k.used(), uuid) {
					free++
				}
			}
			programs.Eventually(t, cluster.Patience, pod+" is decided", func() error {
				err := k.run(pod, count)
				if err != nil && free >= count {
					return err // the plugin is not registered again yet
				}
				return nil
			})
		}
		o.mustBeOnce(fmt.Sprintf("round %d, %s", round, what), heldBy(t, c, agent), k.used())
	}
	operations := load.Stop()
	for _, pod := range slices.Sorted(maps.Keys(k.pods)) {
		k.end(pod)
	}
	o.want(o.configured)
	c.Audit(operations)
	programs.Eventually(t, cluster.Patience, "every device is back in the pool", func() error {
		held, err := c.Held(t.Context(), agent)
		slices.Sort(held["POOL"])
		if err == nil && !slices.Equal(held["POOL"], slices.Sorted(slices.Values(o.configured))) {
			err = fmt.Errorf("held are %v", held)
		}
		return err
	})
}
