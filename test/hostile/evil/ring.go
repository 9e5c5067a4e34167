package evil

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/musterd/muster/agent"
)

// AttackerKey is the gossip key, in base64, that the attacks on the keyring try
// to plant.
const AttackerKey = "ZXZpbC1ldmlsLWV2aWwtZXZpbC1ldmlsLWV2aWwhISE="

// ringModes are a member of the serf ring that has the gossip key (level A1).
var ringModes = map[string]func(context.Context, *run) error{
	// Another member says that it is the first honest agent, at its own address.
	"forge-tag": func(ctx context.Context, r *run) error {
		return r.asMember(ctx, map[string]string{"role": "agent", "id": r.Agents[0].Node, "addr": r.trap(), "api": "v1"}, func(*serf.Serf) error {
			l, err := net.Listen("tcp", r.trap()) // a leader that dials here believed the tag
			if err != nil {
				return err
			}
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					r.count("dialled by the leader")
					conn.Close()
				}
			}()
			pause(ctx, r.For)
			return nil
		})
	},
	// One member takes a new id and a new address again and again.
	"invent-ids": func(ctx context.Context, r *run) error {
		return r.asMember(ctx, map[string]string{"role": "agent", "id": "invented", "addr": r.IP + ":1", "api": "v1"}, func(s *serf.Serf) error {
			var listeners []net.Listener
			defer func() {
				for _, l := range listeners {
					l.Close()
				}
			}()
			l, err := net.Listen("tcp", r.trap())
			if err != nil {
				return err
			}
			listeners = append(listeners, l)
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					r.count("dialled by the leader")
					conn.Close()
				}
			}()
			until := time.Now().Add(4 * r.For) // a change may take as long as its broadcast
			for i := range min(1000, 200*r.Size) {
				if time.Now().After(until) {
					break
				}
				if err := s.SetTags(map[string]string{"role": "agent", "id": fmt.Sprint("invented-", i), "addr": r.trap(), "api": "v1"}); err != nil {
					r.note("set tags: %v", err)
				}
				r.count("tags: changed")
				if !pause(ctx, 25*time.Millisecond) {
					break
				}
			}
			pause(ctx, r.For/2)
			return nil
		})
	},
	// The member installs a key of its own, makes it the first and removes the
	// cluster's.
	"change-keys": func(ctx context.Context, r *run) error {
		return r.asMember(ctx, map[string]string{"role": "agent", "id": r.Node, "addr": r.IP + ":8472", "api": "v1"}, func(s *serf.Serf) error {
			keys := s.KeyManager()
			before := r.keyOfRing
			for _, step := range []struct {
				name string
				do   func() (*serf.KeyResponse, error)
			}{
				{"install-key", func() (*serf.KeyResponse, error) { return keys.InstallKey(AttackerKey) }},
				{"use-key", func() (*serf.KeyResponse, error) { return keys.UseKey(AttackerKey) }},
				{"remove-key", func() (*serf.KeyResponse, error) { return keys.RemoveKey(before) }},
			} {
				answer, err := step.do()
				if answer == nil {
					r.note("%s: %v", step.name, err)
					continue
				}
				r.note("%s: %d members, %d answers, %d refusals: %v", step.name, answer.NumNodes, answer.NumResp, answer.NumErr, answer.Messages)
				// The attacker's own member accepts its own query.
				if obeyed := answer.NumResp - answer.NumErr - 1; obeyed > 0 {
					r.count(step.name + ": obeyed by others")
				}
			}
			pause(ctx, r.For/2)
			return nil
		})
	},
	// The member reads what tenants wait for.
	"read-queue": func(ctx context.Context, r *run) error {
		return r.asMember(ctx, map[string]string{"role": "agent", "id": r.Node, "addr": r.IP + ":8472", "api": "v1"}, func(s *serf.Serf) error {
			for _, q := range []struct{ name, payload string }{{"queue", ""}, {"why", "default/secret"}} {
				answers, err := s.Query(q.name, []byte(q.payload), &serf.QueryParam{Timeout: time.Second})
				if err != nil {
					return err
				}
				for answer := range answers.ResponseCh() {
					r.note("%s by %s: %s", q.name, answer.From, answer.Payload)
					r.count("query " + q.name + ": answered")
				}
			}
			return nil
		})
	},
}

// trap is an address that no node has registered: at the attackers' own port a
// leader looks for the nodes of earlier attacks, which have registered there.
func (r *run) trap() string { return net.JoinHostPort(r.IP, "8473") }

// asMember joins the serf ring under the attacker's node id with these tags and
// runs the attack there.
func (r *run) asMember(ctx context.Context, tags map[string]string, attack func(*serf.Serf) error) error {
	identity, err := r.enroll(ctx)
	if err != nil {
		return fmt.Errorf("enroll %s: %w", r.Node, err)
	}
	s, err := r.joinRing(identity, tags)
	if err != nil {
		return err
	}
	defer func() { _ = s.Shutdown() }()
	r.ready()
	return attack(s)
}

func (r *run) joinRing(identity *agent.Identity, tags map[string]string) (*serf.Serf, error) {
	keys := identity.Keyring().Keys()
	r.keyOfRing = base64.StdEncoding.EncodeToString(keys[0])
	m := memberlist.DefaultLANConfig()
	m.Label, m.BindAddr, m.BindPort, m.AdvertisePort = r.Cluster+"/serf", r.IP, 7946, 7946
	m.LogOutput = io.Discard
	var err error
	if m.Keyring, err = memberlist.NewKeyring(keys, keys[0]); err != nil {
		return nil, err
	}
	c := serf.DefaultConfig()
	c.NodeName, c.Tags, c.MemberlistConfig = r.Node, tags, m
	c.QueryTimeoutMult = 4 // an answer that does not come is not worth seconds
	c.ProtocolVersion, c.LogOutput, c.EnableNameConflictResolution = serf.ProtocolVersionMax, io.Discard, false
	events := make(chan serf.Event, 4096)
	c.EventCh = events
	go func() {
		for range events { //nolint:revive // what comes is of no use
		}
	}()
	s, err := serf.Create(c)
	if err != nil {
		return nil, err
	}
	if _, err := s.Join(r.serfs(), true); err != nil {
		return nil, err
	}
	if n := len(s.Members()); n < 2 {
		return nil, fmt.Errorf("the ring has %s member", strconv.Itoa(n))
	}
	return s, nil
}
