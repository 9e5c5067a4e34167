package gossip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/musterd/muster/gossip/ipc"
)

// SerfConfig configures a member of the serf ring. See Config for the fields'
// meaning.
type SerfConfig struct {
	Cluster    string
	Tags       Tags
	Bind       string
	Advertise  string
	Join       []string
	RPC        RPC
	Keyring    *Keyring
	Keys       KeyChanger
	Transports Transports
	Profile    Profile
	Queries    map[string]QueryHandler
	Local      map[string]QueryHandler
	OnMember   func(Member)
	OnHint     func(Hint)
	Logger     *slog.Logger
}

// Status is a member's state in the serf ring.
type Status string

const (
	Alive   Status = "alive"
	Leaving Status = "leaving"
	Left    Status = "left"   // left on purpose
	Failed  Status = "failed" // does not answer; may return
	Reaped  Status = "reaped" // gone for so long that the ring forgot it
)

// Member is one member of the serf ring in its newest state. A callback that
// takes it is called once per change; changes of one member that wait are
// folded into the newest.
type Member struct {
	Name   string
	Addr   string // "host:port" in the serf ring
	Tags   Tags
	Status Status
}

// Hint is a user event: "look again", nothing more. Hints may be lost, repeated
// and reordered; those that wait behind 64 others are dropped.
type Hint struct {
	Name    string
	Payload []byte
}

// Serf is a member of the serf ring. Close ends it.
type Serf struct {
	log     *slog.Logger
	serf    *serf.Serf
	events  chan serf.Event
	ipc     *ipc.Server // nil without RPC
	rpcAddr string
	name    string
	addr    string
	port    atomic.Uint32 // own port, 0 until known
	inbox   *inbox
	joiner  *joiner
	roster  *roster
	refused *refusals
	keyring *Keyring // nil without encryption
	lines   *log.Logger

	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	err    error
}

// StartSerf binds, starts the member and returns; joining goes on in the
// background (see Joined). Errors name the field or the address.
func StartSerf(cfg SerfConfig) (*Serf, error) {
	bind, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	join, err := joinAddresses(cfg.Join)
	if err != nil {
		return nil, err
	}
	logger := loggerOr(cfg.Logger).With("ring", "serf")
	s := &Serf{
		log: logger, name: cfg.Tags.ID, joiner: newJoiner(logger), keyring: cfg.Keyring,
		events: make(chan serf.Event, 64), roster: newRoster(judgeTags), refused: newRefusals(logger),
	}
	s.inbox = newInbox(cfg, s.joiner.nudge)

	lines := &ipc.Lines{}
	var out io.Writer = &logWriter{logger: loggerOr(cfg.Logger), ring: "serf"}
	if cfg.RPC.Addr != "" {
		out = io.MultiWriter(lines, out)
	}
	s.lines = log.New(out, "", log.LstdFlags)
	mc := cfg.Profile.memberlist()
	mc.Label = cfg.Cluster + "/serf"
	mc.BindAddr, mc.BindPort = bind.Addr().String(), int(bind.Port())
	mc.AdvertiseAddr, mc.AdvertisePort = cfg.Advertise, mc.BindPort
	mc.Keyring = cfg.Keyring.memberlist()
	mc.Logger = s.lines

	var listener net.Listener
	if cfg.RPC.Addr != "" {
		if listener, err = s.listenRPC(cfg.RPC); err != nil {
			return nil, err
		}
	}
	if err := s.create(cfg, mc); err != nil {
		if listener != nil {
			err = errors.Join(err, listener.Close())
		}
		return nil, fmt.Errorf("serf ring at %s: %w", bind, err)
	}
	if listener != nil {
		s.ipc = ipc.Serve(listener, ipc.Config{
			Serf: s.serf, Token: cfg.RPC.Token, Keys: keysOf(cfg.Keyring, cfg.Keys), Answers: localAnswers(cfg.Local),
			CheckTags: s.checkTags, Lines: lines, Logger: logger,
		})
	}
	s.run(join)
	return s, nil
}

// listenRPC opens the RPC port; nil where it is optional and taken.
func (s *Serf) listenRPC(r RPC) (net.Listener, error) {
	l, err := net.Listen("tcp", strings.Replace(r.Addr, "localhost:", "127.0.0.1:", 1))
	switch {
	case err == nil:
		s.rpcAddr = l.Addr().String()
		return l, nil
	case r.Optional && errors.Is(err, syscall.EADDRINUSE):
		s.log.Warn("serf_rpc_not_served", "address", r.Addr, "error", err, "do", "set gossip.serfRPC to a free port, or to \"\" for none")
		return nil, nil
	}
	return nil, fmt.Errorf("serf RPC address %q: %w", r.Addr, err)
}

// create starts the member, with Muster's judgement in front of serf's.
func (s *Serf) create(cfg SerfConfig, mc *memberlist.Config) error {
	if err := use(cfg.Transports, SerfRing, cfg.Tags.ID, mc); err != nil {
		return err
	}
	between, err := newSeam(mc, s.refused)
	if err != nil {
		return err
	}
	sc := cfg.Profile.serf(mc)
	sc.NodeName = cfg.Tags.ID
	sc.Tags = cfg.Tags.encode()
	sc.Merge = mergeWatch{s}
	sc.EventCh = s.events
	sc.Logger = s.lines
	between.install = func() {
		g := newGuard(s.roster, s.refused)
		g.Delegate, mc.Delegate = mc.Delegate, g
		mc.Events = rosterEvents{s.roster, mc.Events}
		mc.Alive = aliveDelegates{s.roster, s.refused, mc.Alive}
	}
	if s.serf, err = serf.Create(sc); err != nil {
		return errors.Join(err, between.Shutdown())
	}
	return nil
}

func (cfg SerfConfig) validate() (bind netip.AddrPort, err error) {
	if err := validCluster(cfg.Cluster); err != nil {
		return bind, err
	}
	if err := cfg.Tags.Validate(); err != nil {
		return bind, err
	}
	for name, handler := range cfg.Queries {
		if name == "" || handler == nil || strings.HasPrefix(name, serf.InternalQueryPrefix) {
			return bind, fmt.Errorf("query handler %q: want a name without the prefix %q and a function", name, serf.InternalQueryPrefix)
		}
	}
	if err := cfg.RPC.validate(); err != nil {
		return bind, err
	}
	if err := checkAdvertise(cfg.Advertise); err != nil {
		return bind, err
	}
	return bindAddress("serf bind address", cfg.Bind, cfg.Keyring)
}

// run starts the member's goroutines.
func (s *Serf) run(join []string) {
	local := s.serf.LocalMember()
	s.addr = net.JoinHostPort(local.Addr.String(), strconv.Itoa(int(local.Port)))
	s.port.Store(uint32(local.Port))
	s.joiner.own = s.addr
	s.joiner.sources = func() ([]string, bool) { return join, true }
	s.joiner.known = s.others
	s.joiner.join = func(addresses []string) (int, error) { return s.serf.Join(addresses, true) }

	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.wg.Go(func() { s.joiner.run(ctx) })
	s.wg.Go(s.readEvents)
	if s.keyring != nil {
		s.wg.Go(func() { s.watchKeyring(ctx) })
	}
	s.wg.Go(func() { s.inbox.deliverMembers(ctx) })
	s.wg.Go(func() { s.inbox.serve(ctx) })
	s.wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.Stopped():
			if ctx.Err() != nil {
				return
			}
			s.log.Warn("serf_ring_left", "through", "RPC", "do", "restart this program to join again")
		}
	})
}

// readEvents takes serf's events until the member ends. It never blocks for
// long: serf delivers them under its locks.
func (s *Serf) readEvents() {
	for {
		select {
		case <-s.serf.ShutdownCh():
			return
		case e := <-s.events:
			s.lines.Printf("[INFO] agent: Received event: %s", e.String())
			if m, ok := e.(serf.MemberEvent); ok && m.Type == serf.EventMemberReap {
				for _, gone := range m.Members {
					s.roster.forget(gone.Name)
				}
			}
			s.inbox.HandleEvent(e)
			if s.ipc != nil {
				s.ipc.HandleEvent(e)
			}
		}
	}
}

// watchEvery is how soon a keyring that was changed through the ring is put
// back.
const watchEvery = time.Second

// watchKeyring is the second line behind guard: no message changes the keyring,
// and if one should, the change lasts for a second and is reported.
func (s *Serf) watchKeyring(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := s.keyring.restore()
		if changed || err != nil {
			s.log.Error("gossip_keyring_put_back", "total", s.keyring.PutBack(), "error", err)
		}
	}
}

// checkTags refuses tags that the other members would refuse.
func (s *Serf) checkTags(tags map[string]string) error {
	t := decodeTags(tags)
	if err := t.Validate(); err != nil {
		return err
	}
	if t.ID != s.name {
		return fmt.Errorf("tag id %q: it is this member's name, %q, and stays", t.ID, s.name)
	}
	return nil
}

// Addr is the address this member is bound to in the serf ring.
func (s *Serf) Addr() string { return s.addr }

// RPCAddr is where the serf CLI reaches this member, "" without RPC.
func (s *Serf) RPCAddr() string { return s.rpcAddr }

// Joined is closed once this member sees another one, or at once when it was
// given no address but its own.
func (s *Serf) Joined() <-chan struct{} { return s.joiner.joined }

// JoinError is why the newest attempt to join failed, nil after a success.
func (s *Serf) JoinError() error { return s.joiner.lastError() }

// Stopped is closed when the ring member has ended: by Close, or because an
// operator ran `serf leave` against the RPC port. The process goes on without
// this ring.
func (s *Serf) Stopped() <-chan struct{} { return s.serf.ShutdownCh() }

// Members returns every member that the ring remembers, by name.
func (s *Serf) Members() []Member {
	raw := s.serf.Members()
	members := make([]Member, 0, len(raw))
	for _, m := range raw {
		members = append(members, memberOf(m, Status(m.Status.String())))
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return members
}

// SendHint spreads a user event of at most 512 bytes, name and payload
// together. It does not wait for anyone.
func (s *Serf) SendHint(h Hint) error {
	if err := s.serf.UserEvent(h.Name, h.Payload, false); err != nil {
		return fmt.Errorf("send hint %q with %d bytes: %w", h.Name, len(h.Payload), err)
	}
	return nil
}

// Dropped counts queries and hints that were not served because 64 others
// waited.
func (s *Serf) Dropped() uint64 { return s.inbox.dropped.Load() }

// Close leaves the ring and ends the member. It takes one to two seconds, more only
// while a callback or a dial blocks. Calling it again returns the same result.
func (s *Serf) Close() error { return s.end(true) }

// Abandon ends the member without a word: the others find out by probing, as
// after a crash. It is for processes that end together with the ring.
func (s *Serf) Abandon() error { return s.end(false) }

func (s *Serf) end(leave bool) error {
	s.once.Do(func() {
		s.cancel()
		if s.ipc != nil {
			s.ipc.Close()
		}
		var left error
		if leave {
			select {
			case <-s.Stopped():
			default:
				left = s.serf.Leave()
			}
		}
		s.err = errors.Join(left, s.serf.Shutdown())
		s.wg.Wait()
	})
	return s.err
}

func (s *Serf) others() map[string]bool {
	known := make(map[string]bool)
	for _, m := range s.serf.Members() {
		if m.Status == serf.StatusAlive && m.Name != s.name {
			known[memberOf(m, Alive).Addr] = true
		}
	}
	return known
}

func memberOf(m serf.Member, status Status) Member {
	return Member{
		Name:   m.Name,
		Addr:   net.JoinHostPort(m.Addr.String(), strconv.Itoa(int(m.Port))),
		Tags:   decodeTags(m.Tags),
		Status: status,
	}
}

// mergeWatch notices when the ring holds this member's name at another port:
// the entry of an earlier run, which stays until the others see that the run
// has died. It is called under the ring's locks and must not call back.
type mergeWatch struct{ s *Serf }

// NotifyMerge never refuses anyone.
func (w mergeWatch) NotifyMerge(members []*serf.Member) error {
	own := w.s.port.Load()
	for _, m := range members {
		if m.Name == w.s.name && own != 0 && uint32(m.Port) != own && m.Status != serf.StatusLeft {
			w.s.joiner.conflict.Store(true)
		}
	}
	return nil
}
