// Command manager is the part of the kubelet of Kubernetes 1.36 that gives devices to
// pods: its device manager and its PodResources server, at the kubelet's fixed paths.
// A test drives it by lines of JSON on the standard input, and reads one line for each
// on the standard output. It ends when the input ends, or when it is killed, as a
// kubelet is. Its pods are those of the file of -pods, as a kubelet's are those of its
// API server.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/server"
)

// pod is a pod of one container.
type pod struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Count    int64  `json:"count"`
}

// command is one line of the input.
type command struct {
	// Op is run, end or show.
	Op  string `json:"op"`
	Pod pod    `json:"pod"`
}

// reply is one line of the output.
type reply struct {
	Error string `json:"error,omitempty"`
	// Units are the identifiers of the pod's units, Env its variables.
	Units []string          `json:"units,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
	// Healthy has the number of healthy units by resource name.
	Healthy map[string]int64 `json:"healthy,omitempty"`
}

const container = "main"

// kubelet has the pods.
type kubelet struct {
	manager *devicemanager.ManagerImpl
	file    string

	mu   sync.Mutex
	pods map[string]*v1.Pod
}

func main() {
	file := flag.String("pods", "", "file of the pods that are active")
	flag.Parse()
	if err := run(*file); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	logger := klog.Background()
	if err := os.MkdirAll(podResourcesDir, 0o750); err != nil {
		return err
	}
	k := &kubelet{file: file, pods: map[string]*v1.Pod{}}
	if err := k.load(); err != nil {
		return err
	}
	var err error
	k.manager, err = devicemanager.NewManagerImpl([]cadvisorapi.Node{{Id: 0}, {Id: 1}, {Id: 2}, {Id: 3}, {Id: 4}, {Id: 5}, {Id: 6}, {Id: 7}}, topologymanager.NewFakeManager())
	if err != nil {
		return err
	}
	if err := k.manager.Start(logger, k.active, ready{}, containermap.NewContainerMap(), sets.New[string]()); err != nil {
		return err
	}
	socket := filepath.Join(podResourcesDir, "kubelet.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	go server.ListenAndServePodResources(context.Background(), "unix:"+socket, podresources.PodResourcesProviders{
		Pods: k, Devices: devices{k.manager}, Cpus: none{}, Memory: none{}, DynamicResources: none{},
	})
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var c command
		r := reply{}
		err := json.Unmarshal(lines.Bytes(), &c)
		if err == nil {
			r, err = k.do(c)
		}
		if err != nil {
			r.Error = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

const podResourcesDir = "/var/lib/kubelet/pod-resources"

func (k *kubelet) do(c command) (r reply, err error) {
	switch c.Op {
	case "run":
		return k.run(c.Pod)
	case "end":
		k.mu.Lock()
		delete(k.pods, c.Pod.Name)
		k.mu.Unlock()
		return r, k.save()
	case "show":
		capacity, allocatable, _ := k.manager.GetCapacity()
		r.Healthy = map[string]int64{}
		for name := range capacity {
			amount := allocatable[name]
			r.Healthy[string(name)] = amount.Value()
		}
		return r, nil
	}
	return r, fmt.Errorf("op %q: want run, end or show", c.Op)
}

// run admits a pod as the kubelet does: the pod is active before its devices are
// allocated, and is gone where that fails.
func (k *kubelet) run(p pod) (r reply, err error) {
	object := p.object()
	k.mu.Lock()
	k.pods[p.Name] = object
	k.mu.Unlock()
	if err := k.manager.Allocate(object, &object.Spec.Containers[0]); err != nil {
		k.mu.Lock()
		delete(k.pods, p.Name)
		k.mu.Unlock()
		return r, err
	}
	options, err := k.manager.GetDeviceRunContainerOptions(context.Background(), object, &object.Spec.Containers[0])
	if err != nil {
		return r, err
	}
	r.Env = map[string]string{}
	if options != nil {
		for _, e := range options.Envs {
			r.Env[e.Name] = e.Value
		}
	}
	for _, byID := range k.manager.GetDevices(string(object.UID), container) {
		for id := range byID {
			r.Units = append(r.Units, id)
		}
	}
	return r, k.save()
}

func (p pod) object() *v1.Pod {
	amount := v1.ResourceList{v1.ResourceName(p.Resource): *resource.NewQuantity(p.Count, resource.DecimalSI)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: "default", UID: types.UID(p.Name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: container, Resources: v1.ResourceRequirements{Requests: amount, Limits: amount}}}},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
}

// save writes the pods to the file, load reads them.
func (k *kubelet) save() error {
	list := []pod{}
	for _, object := range k.GetPods() {
		for name, amount := range object.Spec.Containers[0].Resources.Limits {
			list = append(list, pod{object.Name, string(name), amount.Value()})
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := os.WriteFile(k.file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(k.file+".new", k.file)
}

func (k *kubelet) load() error {
	text, err := os.ReadFile(k.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var list []pod
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, p := range list {
		k.pods[p.Name] = p.object()
	}
	return nil
}

func (k *kubelet) active() []*v1.Pod { return k.GetPods() }

// GetActivePods, GetPods and GetPodByName are the kubelet's pod manager.
func (k *kubelet) GetActivePods() []*v1.Pod { return k.GetPods() }

func (k *kubelet) GetPods() []*v1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []*v1.Pod
	for _, p := range k.pods {
		list = append(list, p)
	}
	return list
}

func (k *kubelet) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.pods[name]
	return p, ok && p.Namespace == namespace
}

type ready struct{}

func (ready) AddSource(string) {}
func (ready) AllReady() bool   { return true }

// devices is the container manager's answer to PodResources.
type devices struct{ *devicemanager.ManagerImpl }

func (d devices) GetDevices(podUID, containerName string) []*podresourcesapi.ContainerDevices {
	return listed(d.ManagerImpl.GetDevices(podUID, containerName))
}

func (d devices) GetAllocatableDevices() []*podresourcesapi.ContainerDevices {
	return listed(d.ManagerImpl.GetAllocatableDevices())
}

func listed(all devicemanager.ResourceDeviceInstances) (list []*podresourcesapi.ContainerDevices) {
	for name, byID := range all {
		for id := range byID {
			list = append(list, &podresourcesapi.ContainerDevices{ResourceName: name, DeviceIds: []string{id}})
		}
	}
	return list
}

// none is a node without exclusive CPUs, memory and claims.
type none struct{}

func (none) GetCPUs(string, string) []int64                              { return nil }
func (none) GetAllocatableCPUs() []int64                                 { return nil }
func (none) GetMemory(string, string) []*podresourcesapi.ContainerMemory { return nil }
func (none) GetAllocatableMemory() []*podresourcesapi.ContainerMemory    { return nil }
func (none) GetDynamicResources(*v1.Pod, *v1.Container) []*podresourcesapi.DynamicResource {
	return nil
}
