// Package kubelettest is a small kubelet for tests: it takes the registrations of
// device plugins, keeps their lists, allocates to pods, and answers PodResources. It
// behaves as the real kubelet where plugins can see it: a start removes all sockets
// of its folder, and nothing tells a plugin that a pod has ended.
package kubelettest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// patient is the time that a test waits for an event that must come.
const patient = 30 * time.Second

// Kubelet is one start of the kubelet. Its pods are those of its Checkpoint.
type Kubelet struct {
	pluginapi.UnimplementedRegistrationServer
	podresources.UnimplementedPodResourcesListerServer

	t       testing.TB
	dir     string
	server  *grpc.Server
	pods    *grpc.Server
	cancel  context.CancelFunc
	streams sync.WaitGroup
	running context.Context

	// allocating keeps lists from coming between the plugin's answer and the pod: on a busy
	// machine such lists are apart by more than the short times of tests.
	allocating sync.RWMutex

	mu        sync.Mutex
	changed   chan struct{} // closed when anything is another
	resources map[string]*plugin
	names     []string // of the registrations, in their order
	memory    *Checkpoint
	lists     int
	broken    bool
}

type plugin struct {
	client  pluginapi.DevicePluginClient
	devices []*pluginapi.Device
	drop    context.CancelFunc // ends the stream
}

// Checkpoint is what a kubelet remembers over its restarts: the units of its pods.
type Checkpoint struct{ Pods map[string]Pod }

// Pod is a pod of one container with units of one resource.
type Pod struct {
	Resource string
	Units    []string
	// Answer is the plugin's.
	Answer *pluginapi.ContainerAllocateResponse
}

// Dir makes a folder for the sockets of a kubelet, with a path that is short enough.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// PodResources is the socket of the PodResources API of a folder.
func PodResources(dir string) string { return filepath.Join(dir, "pod-resources.socket") }

// Start starts a kubelet with a checkpoint; nil is an empty one.
func Start(t testing.TB, dir string, memory *Checkpoint) *Kubelet {
	t.Helper()
	if memory == nil {
		memory = &Checkpoint{Pods: map[string]Pod{}}
	}
	k := &Kubelet{t: t, dir: dir, server: grpc.NewServer(), pods: grpc.NewServer(), resources: map[string]*plugin{}, memory: memory, changed: make(chan struct{})}
	k.running, k.cancel = context.WithCancel(context.Background())
	old, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	for _, socket := range old {
		if gone := os.Remove(socket); !errors.Is(gone, os.ErrNotExist) { // the plugin may remove it at the same time
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	pluginapi.RegisterRegistrationServer(k.server, k)
	podresources.RegisterPodResourcesListerServer(k.pods, k)
	k.serve(k.pods, PodResources(dir))
	k.serve(k.server, filepath.Join(dir, "kubelet.sock"))
	t.Cleanup(func() { k.Stop() })
	return k
}

func (k *Kubelet) serve(s *grpc.Server, socket string) {
	k.t.Helper()
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		k.t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as after a kill
	go s.Serve(l)
}

// Stop ends the kubelet, and leaves its sockets behind, as a kill does. Its checkpoint
// is for the next start.
func (k *Kubelet) Stop() *Checkpoint {
	k.cancel()
	k.server.Stop()
	k.pods.Stop()
	k.streams.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.memory
}

// update changes the kubelet and wakes who waits.
func (k *Kubelet) update(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	close(k.changed)
	k.changed = make(chan struct{})
}

// Register implements the kubelet's API.
func (k *Kubelet) Register(_ context.Context, r *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	if r.GetVersion() != pluginapi.Version || !r.GetOptions().GetGetPreferredAllocationAvailable() {
		return nil, fmt.Errorf("version %q, options %v", r.GetVersion(), r.GetOptions())
	}
	conn, err := grpc.NewClient("unix://"+filepath.Join(k.dir, r.GetEndpoint()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	p := &plugin{client: pluginapi.NewDevicePluginClient(conn)}
	ctx, cancel := context.WithCancel(k.running)
	p.drop = cancel
	stream, err := p.client.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		cancel()
		return nil, errors.Join(err, conn.Close())
	}
	k.update(func() { k.resources[r.GetResourceName()] = p; k.names = append(k.names, r.GetResourceName()) })
	k.streams.Go(func() {
		defer conn.Close()
		defer cancel()
		for {
			list, err := stream.Recv()
			if err != nil {
				k.update(func() { p.devices = nil })
				return
			}
			k.update(func() { p.devices = list.GetDevices() })
		}
	})
	return &pluginapi.Empty{}, nil
}

// List implements the PodResources API.
func (k *Kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.allocating.RLock()
	defer k.allocating.RUnlock()
	out := &podresources.ListPodResourcesResponse{}
	var err error
	k.update(func() {
		if k.broken {
			err = errors.New("the pods are not known yet")
			return
		}
		k.lists++
		for _, name := range slices.Sorted(maps.Keys(k.memory.Pods)) {
			pod := k.memory.Pods[name]
			out.PodResources = append(out.PodResources, &podresources.PodResources{Name: name, Namespace: "default", Containers: []*podresources.ContainerResources{{
				Name: "main", Devices: []*podresources.ContainerDevices{{ResourceName: pod.Resource, DeviceIds: pod.Units}},
			}}})
		}
	})
	return out, err
}

// await waits until a condition of the locked kubelet holds.
func (k *Kubelet) await(what string, cond func() bool) {
	k.t.Helper()
	deadline := time.After(patient)
	for {
		k.mu.Lock()
		changed, ok := k.changed, cond()
		k.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			k.t.Fatalf("never: %s", what)
		}
	}
}

// Await waits until a resource has exactly the healthy units.
func (k *Kubelet) Await(resource string, healthy ...string) {
	k.t.Helper()
	k.await(fmt.Sprintf("%s has %v", resource, healthy), func() bool { return slices.Equal(k.healthy(resource), healthy) })
}

// Drop ends the kubelet's connection to the plugin of a resource, without a word to the plugin.
func (k *Kubelet) Drop(resource string) { k.update(func() { k.resources[resource].drop() }) }

// AwaitLists waits until n more lists of PodResources were answered.
func (k *Kubelet) AwaitLists(n int) {
	k.t.Helper()
	k.mu.Lock()
	want := k.lists + n
	k.mu.Unlock()
	k.await("lists of PodResources", func() bool { return k.lists >= want })
}

// Break has PodResources fail, or not.
func (k *Kubelet) Break(broken bool) { k.update(func() { k.broken = broken }) }

// Registrations are the resource names in the order in which they were registered.
func (k *Kubelet) Registrations() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.names)
}

// Devices are the units of a resource, as the plugin listed them last.
func (k *Kubelet) Devices(resource string) []*pluginapi.Device {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.resources[resource]; p != nil {
		return p.devices
	}
	return nil
}

func (k *Kubelet) healthy(resource string) (list []string) {
	if p := k.resources[resource]; p != nil {
		for _, d := range p.devices {
			if d.GetHealth() == pluginapi.Healthy {
				list = append(list, d.GetID())
			}
		}
	}
	return list
}

// Run starts a pod with n units, as the kubelet chooses them: those that the plugin
// prefers of those that are healthy and that no pod has.
func (k *Kubelet) Run(name, resource string, n int) (Pod, error) {
	k.mu.Lock()
	p, available := k.resources[resource], k.healthy(resource)
	for _, pod := range k.memory.Pods {
		available = slices.DeleteFunc(available, func(id string) bool { return slices.Contains(pod.Units, id) })
	}
	k.mu.Unlock()
	if p == nil || len(available) < n {
		return Pod{}, fmt.Errorf("%d units of %s are available, want %d", len(available), resource, n)
	}
	ctx, cancel := context.WithTimeout(k.running, patient)
	defer cancel()
	preferred, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{
		{AvailableDeviceIDs: available, AllocationSize: int32(n)},
	}})
	if err != nil {
		return Pod{}, err
	}
	return k.RunOn(name, resource, preferred.GetContainerResponses()[0].GetDeviceIDs()...)
}

// RunOn starts a pod with these units, whoever has them.
func (k *Kubelet) RunOn(name, resource string, units ...string) (Pod, error) {
	k.mu.Lock()
	p := k.resources[resource]
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(k.running, patient)
	defer cancel()
	k.allocating.Lock()
	defer k.allocating.Unlock()
	r, err := p.client.Allocate(ctx, &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: units}}})
	if err != nil {
		return Pod{}, err
	}
	pod := Pod{Resource: resource, Units: units, Answer: r.GetContainerResponses()[0]}
	k.update(func() { k.memory.Pods[name] = pod })
	return pod, nil
}

// Pods are the pods that run, by name: a copy.
func (k *Kubelet) Pods() map[string]Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.memory.Pods)
}

// End ends a pod. No plugin hears of it.
func (k *Kubelet) End(name string) { k.update(func() { delete(k.memory.Pods, name) }) }
