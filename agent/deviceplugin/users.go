package deviceplugin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	// maxPodList bounds one list of the PodResources API, in bytes.
	maxPodList = 16 << 20
	// maxName bounds each name of a pod that is kept, in bytes.
	maxName = 253
)

// User is a container that has a unit of the pool.
type User struct {
	// Unit is the kubelet's identifier, Device the UUID of its device.
	Unit, Device string
	// Namespace, Pod and Container are the names that Kubernetes has.
	Namespace, Pod, Container string
}

// Status is the plugin as operators see it.
type Status struct {
	// Units are the units by resource name.
	Units map[string]int
	// Missing are devices of the pool that the kubelet cannot have at present: other
	// work holds them, or the host does not have them.
	Missing []string
	// Users are the containers of the last list, ascending by Unit.
	Users []User
	// Kubelet and PodResources are why the kubelet cannot be reached, "" where it can.
	Kubelet, PodResources string
}

// Status is the present one. Its slices and maps are never changed.
func (p *Plugin) Status() Status {
	p.shown.Lock()
	defer p.shown.Unlock()
	return p.shown.status
}

func (p *Plugin) show(change func(*Status)) {
	p.shown.Lock()
	defer p.shown.Unlock()
	change(&p.shown.status)
}

// String is the status in one line: "muster.io/gpu: 2 of 4 in use; GPU-1: ns/pod/container; …".
func (s Status) String() string {
	var parts []string
	for _, name := range resources(s.Units) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, s.Units[name]))
	}
	for i, u := range s.Users {
		if i == mostShown {
			parts = append(parts, fmt.Sprintf("and %d more containers", len(s.Users)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s: %s/%s/%s", u.Unit, u.Namespace, u.Pod, u.Container))
	}
	if len(s.Missing) > 0 {
		parts = append(parts, fmt.Sprintf("not free yet, or not on this host: %s", strings.Join(s.Missing[:min(len(s.Missing), mostShown)], " ")))
	}
	for _, why := range []string{s.Kubelet, s.PodResources} {
		if why != "" {
			parts = append(parts, why)
		}
	}
	return strings.Join(parts, "; ")
}

// mostShown bounds the containers that Status.String names.
const mostShown = 32

// failed keeps a reason, and logs it when it is new.
func failed(reason *string, err error, log *slog.Logger, event string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != *reason && text != "" {
		log.Warn(event, "error", text)
	}
	*reason = text
}

// users asks the kubelet for the containers that have units of the pool.
func (p *Plugin) users(ctx context.Context) ([]User, error) {
	conn, err := dial(p.config.PodResources)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := podresources.NewPodResourcesListerClient(conn).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("PodResources at %s, without which no device is returned: %w", p.config.PodResources, err)
	}
	return usersOf(list), nil
}

// usersOf are the containers of a list that have GPUs or MIG instances, whatever the
// resource name: an earlier configuration may have had another name.
func usersOf(list *podresources.ListPodResourcesResponse) []User {
	var users []User
	for _, pod := range list.GetPodResources() {
		for _, c := range pod.GetContainers() {
			for _, d := range c.GetDevices() {
				for _, id := range d.GetDeviceIds() {
					if uuid := deviceOf(id); uuidText.MatchString(uuid) && len(id) <= 63 {
						users = append(users, User{
							Unit: id, Device: uuid, Namespace: short(pod.GetNamespace()), Pod: short(pod.GetName()), Container: short(c.GetName()),
						})
					}
				}
			}
		}
	}
	slices.SortFunc(users, func(a, b User) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
	return users
}

func short(name string) string { return strings.ToValidUTF8(name[:min(len(name), maxName)], "?") }
