// Package deviceplugin gives devices of this host to the kubelet: the devices of a
// pool, which the agent's owner sets from the configuration and the operators' wish. It
// is a follower of the owner. The ledger says which devices of the pool the kubelet may
// hand out at present, and keeps the devices that the kubelet has handed out; the kubelet
// says which container uses which device, and so the plugin decides when a device is
// returned. The plugin decides neither which devices are in the pool nor who else gets
// them. The leader plans nothing on these devices.
//
// The border is the kubelet's device plugin API v1beta1 and its PodResources API v1.
package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/ledger"
)

const (
	// kubeletSocket is the kubelet's socket in its folder of device plugins.
	kubeletSocket = "kubelet.sock"
	// callTime bounds one call of the kubelet.
	callTime = 10 * time.Second
)

// Host is the agent: it owns the ledger.
type Host interface {
	// View is the ledger at one moment that is on disk.
	View(ctx context.Context) (*ledger.View, error)
	// Lend puts into the journal, on disk, that containers get the devices. It fails,
	// for all of them, where one of them is not in the pool.
	Lend(ctx context.Context, uuids []string) error
	// Return gives devices back that no container has. A device on which a process
	// runs stays lent.
	Return(ctx context.Context, uuids []string) error
}

// Plugin announces the pool to the kubelet, and returns devices. Run does the work.
type Plugin struct {
	config Config
	// pool are the UUIDs of the present pool, which is never changed; nil where the
	// plugin is off.
	pool atomic.Pointer[[]string]
	host Host
	log  *slog.Logger
	now  func() time.Time
	wake chan struct{} // capacity 1: the ledger has changed

	servers map[string]*server // by resource name; of Run alone

	mu    sync.Mutex // is held while devices are lent and returned
	loans *loans

	shown struct {
		sync.Mutex
		status Status
	}
}

// New checks the configuration; its faults are all named. The plugin is off
// until SetPool where Config.Pool is nil.
func New(c Config, host Host, log *slog.Logger, now func() time.Time) (*Plugin, error) {
	c, err := c.Checked()
	if err != nil {
		return nil, err
	}
	p := &Plugin{config: c, host: host, log: log, now: now, wake: make(chan struct{}, 1), servers: map[string]*server{}}
	p.loans = newLoans(c.Absent, now())
	if c.Pool != nil {
		p.SetPool(c.Pool)
	}
	return p, nil
}

// SetPool replaces the pool. nil switches the plugin off: it serves nothing, and asks
// the kubelet nothing. An empty list that is not nil keeps the plugin on, for devices
// that containers still have.
func (p *Plugin) SetPool(uuids []string) {
	if uuids == nil {
		p.pool.Store(nil)
	} else {
		p.pool.Store(new(slices.Clone(uuids)))
	}
	p.wakeUp()
}

// Pool are the UUIDs of the present pool, ok where the plugin is on; nil is off.
func (p *Plugin) Pool() (uuids []string, ok bool) {
	if p == nil {
		return nil, false
	}
	if list := p.pool.Load(); list != nil {
		return *list, true
	}
	return nil, false
}

// After implements follow.Follower.
func (p *Plugin) After(follow.Group) {
	if _, on := p.Pool(); on {
		p.wakeUp()
	}
}

func (p *Plugin) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run announces the pool until ctx ends.
func (p *Plugin) Run(ctx context.Context) {
	defer func() {
		for _, s := range p.servers {
			s.close()
		}
	}()
	look, list := time.NewTicker(p.config.Look), time.NewTicker(p.config.List)
	defer look.Stop()
	defer list.Stop()
	p.announce(ctx)
	for {
		select {
		case <-p.wake:
		case <-look.C:
		case <-list.C:
			p.list(ctx)
		case <-ctx.Done():
			return
		}
		p.announce(ctx)
	}
}

// announce serves one resource name each for the units that there are, and registers
// the servers with a kubelet that does not know them. A server whose units are all
// gone stays, with none: the kubelet would keep the last list otherwise.
func (p *Plugin) announce(ctx context.Context) {
	pool, on := p.Pool()
	if !on {
		p.end()
		return
	}
	view, err := p.host.View(ctx)
	if err != nil {
		return // the agent ends
	}
	all := offers(&p.config, pool, view)
	for resource := range all {
		if p.servers[resource] == nil {
			p.servers[resource] = newServer(p, resource)
		}
	}
	kubelet, failure := p.kubelet()
	for resource, s := range p.servers {
		s.offer(all[resource])
		if err := p.keep(ctx, s, kubelet); err != nil && failure == nil {
			failure = err
		}
	}
	missing := missing(pool, view)
	p.show(func(status *Status) {
		status.Missing = missing
		status.Units = map[string]int{}
		for resource := range p.servers {
			status.Units[resource] = len(all[resource])
		}
		failed(&status.Kubelet, failure, p.log, "kubelet_unreachable")
	})
}

// end ends all servers, where there are any.
func (p *Plugin) end() {
	if len(p.servers) == 0 {
		return
	}
	for _, s := range p.servers {
		s.close()
	}
	clear(p.servers)
	p.show(func(status *Status) { *status = Status{} })
}

// missing are the devices of the pool that the ledger has not given to the kubelet.
func missing(pool []string, v *ledger.View) (list []string) {
	has := map[string]bool{}
	for _, g := range v.Grants {
		if uuid, _, ok := ledger.PooledUUID(g.Tx); ok {
			has[uuid] = true
		}
	}
	for _, uuid := range pool {
		if !has[uuid] {
			list = append(list, uuid)
		}
	}
	return list
}

// unfollowedLooks is for how many looks a kubelet may have no stream of a server's units.
const unfollowedLooks = 3

// keep has a server listen, be registered and be followed. A kubelet may lose a server that
// it has just registered: Kubernetes 1.36 ends the new connection of a resource when it
// notices late that the one before has ended. The kubelet does not say so, and has no units then.
func (p *Plugin) keep(ctx context.Context, s *server, kubelet string) error {
	if kubelet == "" {
		return nil // the kubelet removes all sockets when it starts
	}
	if !s.isOpen() || s.kubelet != kubelet {
		if err := s.open(ctx); err != nil {
			return fmt.Errorf("serve %s: %w", s.resource, err)
		}
		if err := s.register(ctx, kubelet); err != nil {
			return err
		}
		p.log.Info("device_plugin_registered", "resource", s.resource, "socket", s.socket)
	}
	now := p.now()
	switch {
	case s.isFollowed():
		s.unfollowed = time.Time{}
	case s.unfollowed.IsZero():
		s.unfollowed = now
	case now.Sub(s.unfollowed) >= unfollowedLooks*p.config.Look:
		s.unfollowed = now
		p.log.Warn("device_plugin_not_followed", "resource", s.resource, "action", "register again")
		return s.register(ctx, kubelet)
	}
	return nil
}

// HasKubelet reports whether there is a kubelet's socket.
func (p *Plugin) HasKubelet() bool {
	_, err := p.kubelet()
	return err == nil
}

// kubelet identifies the present start of the kubelet, which makes its socket anew at
// each start: "" and an error where there is none.
func (p *Plugin) kubelet() (string, error) {
	path := filepath.Join(p.config.Sockets, kubeletSocket)
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the kubelet does not run, or its folder is not mounted: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%s: its inode is not known", path)
	}
	return fmt.Sprintf("%d.%d.%d", stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec), nil
}

// lend puts devices into the journal as lent.
func (p *Plugin) lend(ctx context.Context, uuids []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loans.allocated(uuids, p.now())
	if err := p.host.Lend(ctx, uuids); err != nil {
		return err
	}
	p.log.Info("devices_lent", "devices", uuids)
	return nil
}

// list asks the kubelet which containers have devices, and returns the devices that no
// container has had for long enough.
func (p *Plugin) list(ctx context.Context) {
	if _, on := p.Pool(); !on {
		return
	}
	began := p.now()
	kubelet, err := p.kubelet()
	var users []User
	if err == nil {
		users, err = p.users(ctx)
	}
	if again, _ := p.kubelet(); err == nil && again != kubelet {
		err = errors.New("the kubelet started anew while it was asked")
	}
	if err == nil {
		err = p.settle(ctx, began, kubelet, users)
	}
	p.show(func(status *Status) {
		if err == nil {
			status.Users = users
		}
		failed(&status.PodResources, err, p.log, "pod_resources_not_listed")
	})
}

// settle returns the devices that the list allows to return.
func (p *Plugin) settle(ctx context.Context, began time.Time, kubelet string, users []User) error {
	has := map[string]bool{}
	for _, u := range users {
		has[u.Device] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	view, err := p.host.View(ctx)
	if err != nil {
		return err
	}
	var lent []string
	for _, g := range view.Grants {
		if uuid, is, _ := ledger.PooledUUID(g.Tx); is {
			lent = append(lent, uuid)
		}
	}
	free := p.loans.listed(began, kubelet, has, lent)
	if len(free) == 0 {
		return nil
	}
	if err := p.host.Return(ctx, free); err != nil {
		return fmt.Errorf("return %v: %w", free, err)
	}
	p.log.Info("devices_returned", "devices", free)
	return nil
}

// unique is a new identifier for an answer.
func (p *Plugin) unique() string { return uuid.NewString() }

// dial connects to a socket of the kubelet. No byte is sent before the first call.
func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxPodList)))
}

// resources are the resource names that the plugin serves, ascending.
func resources(units map[string]int) []string {
	var list []string
	for name := range units {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
