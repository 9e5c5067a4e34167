package evil

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// registerModes are a hostile host that says something false or too large of
// itself when it registers.
var registerModes = registering(map[string]func(r *run, m *musterv1.RegisterRequest){
	"register-overflow": func(_ *run, m *musterv1.RegisterRequest) {
		for _, n := range m.GetHost().GetTopology().GetNodes() {
			n.Memory = 1<<63 - 1
		}
	},
	"register-growth": func(_ *run, m *musterv1.RegisterRequest) {
		for _, n := range m.GetHost().GetTopology().GetNodes() {
			n.Memory *= 64
		}
	},
	"register-other-model": func(_ *run, m *musterv1.RegisterRequest) {
		for _, d := range m.GetHost().GetInventory().GetDevices() {
			d.Model = "NVIDIA H200"
		}
	},
	"register-hostname": func(r *run, m *musterv1.RegisterRequest) {
		m.Host.Hostname = r.Agents[0].Node
	},
	"register-reserved-labels": func(r *run, m *musterv1.RegisterRequest) {
		m.Host.Labels = map[string]string{"kubernetes.io/hostname": r.Agents[0].Node, "muster.dev/node": r.Agents[0].Node}
	},
	"register-labels-9MB": func(_ *run, m *musterv1.RegisterRequest) {
		m.Host.Labels = map[string]string{"example.org/big": strings.Repeat("x", 9<<20)}
	},
	"register-labels-many": func(_ *run, m *musterv1.RegisterRequest) {
		m.Host.Labels = map[string]string{}
		for i := range 10_000 {
			m.Host.Labels[fmt.Sprintf("example.org/l%d", i)] = "x"
		}
	},
	"register-version-1MB": func(_ *run, m *musterv1.RegisterRequest) { m.Version = strings.Repeat("v", 1<<20) },
	"register-escapes": func(_ *run, m *musterv1.RegisterRequest) {
		m.Version, m.Host.Hostname = "\x1b[2J", "\x1b]0;owned\x07"
	},
	"register-foreign-address": func(r *run, m *musterv1.RegisterRequest) { m.AgentAddr = r.Agents[0].GRPC },
	"register-for-another":     func(r *run, m *musterv1.RegisterRequest) { m.NodeId = r.Agents[0].Node },
	"register-no-host":         func(_ *run, m *musterv1.RegisterRequest) { m.Host = nil },
	"register-a-million-cpus": func(_ *run, m *musterv1.RegisterRequest) {
		for i := range int32(100_000) {
			m.Host.Topology.Cpus = append(m.Host.Topology.Cpus, &musterv1.CPU{Id: i, Online: true, Siblings: fmt.Sprint(i)})
		}
	},
})

// registering makes modes that register once honestly and then falsely, at each
// coordinator.
func registering(changes map[string]func(*run, *musterv1.RegisterRequest)) map[string]func(context.Context, *run) error {
	made := map[string]func(context.Context, *run) error{}
	for name, change := range changes {
		made[name] = func(ctx context.Context, r *run) error {
			seen := make(chan *musterv1.RegisterRequest, 1) // the first honest one
			var lying atomic.Bool
			h, err := r.start(ctx, lies{register: func(m *musterv1.RegisterRequest) {
				select {
				case seen <- proto.Clone(m).(*musterv1.RegisterRequest):
				default:
				}
			}, answer: func(m *musterv1.AgentMessage) []*musterv1.AgentMessage {
				if hello := m.GetHello(); hello != nil && lying.Load() {
					said := &musterv1.RegisterRequest{NodeId: r.Node, Host: hello.GetHost()}
					change(r, said)
					hello.Host = said.GetHost()
				}
				return []*musterv1.AgentMessage{m}
			}})
			if err != nil {
				return err
			}
			defer h.stop()
			r.ready()
			select {
			case honest := <-seen:
				lying.Store(true)
				for _, c := range r.Coordinators {
					m := proto.Clone(honest).(*musterv1.RegisterRequest)
					change(r, m)
					r.count("false registration: " + h.registerAt(ctx, c.GRPC, m))
				}
			case <-time.After(30 * time.Second):
				return fmt.Errorf("the real agent of %s has not registered within 30 s", r.Node)
			}
			h.relay.drop() // the next session begins with the same lie
			pause(ctx, r.For)
			return nil
		}
	}
	return made
}

// registerAt registers at one coordinator and returns the code of the answer.
func (h *host) registerAt(ctx context.Context, address string, m *musterv1.RegisterRequest) string {
	conn, err := dial(address, h.identity.TLS())
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	_, err = musterv1.NewCoordinatorClient(conn).Register(ctx, m)
	return h.codeOf("false registration", err)
}
