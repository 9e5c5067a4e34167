package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/musterd/muster/devices"
)

const (
	// maxMessage bounds a message of the kubelet, in bytes.
	maxMessage = 4 << 20
	// maxStreams bounds the calls of one connection at a time.
	maxStreams = 64
)

// server is the device plugin of one resource name: the kubelet calls it.
type server struct {
	pluginapi.UnimplementedDevicePluginServer
	plugin   *Plugin
	resource string
	socket   string // absolute

	mu      sync.Mutex
	units   []unit
	changed chan struct{} // closed when units are others
	streams int           // calls of ListAndWatch: a kubelet that knows the server has one

	grpc *grpc.Server
	file os.FileInfo // of the socket
	done chan struct{}
	// kubelet is the start of the kubelet that knows the server; "" is none. unfollowed is
	// since when that kubelet has no stream of units; zero while it has one.
	kubelet    string
	unfollowed time.Time
}

// isFollowed reports whether a kubelet follows the units.
func (s *server) isFollowed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams > 0
}

// follow counts one stream more, or less.
func (s *server) follow(streams int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams += streams
}

func newServer(p *Plugin, resource string) *server {
	name := "muster-" + strings.NewReplacer("/", "-", ".", "-").Replace(resource) + ".sock"
	return &server{plugin: p, resource: resource, socket: filepath.Join(p.config.Sockets, name), changed: make(chan struct{})}
}

// offer replaces the units. Calls of ListAndWatch send them.
func (s *server) offer(units []unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(s.units, units) {
		return
	}
	s.units = units
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) offered() ([]unit, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.units, s.changed
}

// open listens on the socket, in the place of what is there.
func (s *server) open(ctx context.Context) error {
	s.close()
	if err := os.Remove(s.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", s.socket)
	if err != nil {
		return err
	}
	// A later server at the same path has its own socket, which this one must not remove.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if s.file, err = os.Lstat(s.socket); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.grpc, s.done = grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams)), make(chan struct{})
	pluginapi.RegisterDevicePluginServer(s.grpc, s)
	go func(g *grpc.Server, done chan struct{}) {
		defer close(done)
		if err := g.Serve(listener); err != nil {
			s.plugin.log.Warn("device_plugin_ended", "resource", s.resource, "error", err)
		}
	}(s.grpc, s.done)
	return nil
}

// isOpen reports whether the socket is still the server's own: a kubelet that starts
// removes all sockets of its folder.
func (s *server) isOpen() bool {
	if s.grpc == nil {
		return false
	}
	now, err := os.Lstat(s.socket)
	return err == nil && os.SameFile(now, s.file)
}

// close ends the server and removes its socket.
func (s *server) close() {
	if s.grpc == nil {
		return
	}
	if s.isOpen() {
		_ = os.Remove(s.socket) // the next open removes it otherwise
	}
	s.grpc.Stop()
	<-s.done
	s.grpc, s.kubelet, s.unfollowed = nil, "", time.Time{}
}

// GetDevicePluginOptions implements the kubelet's API.
func (s *server) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return options(), nil
}

func options() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}
}

// ListAndWatch implements the kubelet's API: the units now, and after each change.
func (s *server) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	s.follow(1)
	defer s.follow(-1)
	for {
		units, changed := s.offered()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: listed(units)}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// listed are units in the kubelet's words.
func listed(units []unit) []*pluginapi.Device {
	list := make([]*pluginapi.Device, len(units))
	for i, u := range units {
		list[i] = &pluginapi.Device{ID: u.id, Health: pluginapi.Unhealthy}
		if u.health {
			list[i].Health = pluginapi.Healthy
		}
		if u.numa != devices.UnknownNode {
			list[i].Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: int64(u.numa)}}}
		}
	}
	return list
}

// GetPreferredAllocation implements the kubelet's API.
func (s *server) GetPreferredAllocation(ctx context.Context, r *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	view, err := s.plugin.host.View(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the agent does not answer: %v", err)
	}
	answer := &pluginapi.PreferredAllocationResponse{}
	for _, c := range r.GetContainerRequests() {
		list, err := prefer(view.Host, c.GetAvailableDeviceIDs(), c.GetMustIncludeDeviceIDs(), int(c.GetAllocationSize()))
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "%s: %v", s.resource, err)
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: list})
	}
	return answer, nil
}

// Allocate implements the kubelet's API. The answer leaves the host once the devices
// are in the agent's journal, on disk.
func (s *server) Allocate(ctx context.Context, r *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	units, _ := s.offered()
	known := map[string]bool{}
	for _, u := range units {
		known[u.id] = true
	}
	out := &pluginapi.AllocateResponse{}
	var uuids []string
	for _, c := range r.GetContainerRequests() {
		for _, id := range c.GetDevicesIds() {
			if !known[id] {
				return nil, status.Errorf(codes.InvalidArgument, "%s: unit %s is not offered on this node", s.resource, id)
			}
		}
		own := devicesOf(c.GetDevicesIds())
		uuids = append(uuids, own...)
		out.ContainerResponses = append(out.ContainerResponses, answer(&s.plugin.config, own, s.plugin.unique()))
	}
	if err := s.plugin.lend(ctx, uuids); err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "%s: %v", s.resource, err)
	}
	return out, nil
}

// PreStartContainer implements the kubelet's API. The kubelet does not call it, for the
// options do not ask for it.
func (s *server) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}

// register announces the server to the kubelet.
func (s *server) register(ctx context.Context, kubelet string) error {
	conn, err := dial(filepath.Join(s.plugin.config.Sockets, kubeletSocket))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: filepath.Base(s.socket), ResourceName: s.resource, Options: options(),
	})
	if err != nil {
		return fmt.Errorf("register %s: %w", s.resource, err)
	}
	s.kubelet = kubelet
	return nil
}
