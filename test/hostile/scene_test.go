package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/hostile/evil"
	"github.com/musterd/muster/test/programs"
)

// scene is one attack under way.
type scene struct {
	*world
	t        *testing.T
	name     string
	attack   attack
	ctx      context.Context // ends with the attack's patience
	node     string          // the attacker's
	dir      string          // the attacker's
	report   evil.Report
	result   result
	problems []string
}

// result is what is written down of a case.
type result struct {
	Case, Row, Level, Mode string
	Coordinators           int
	Undisturbed, Disturbed latencies
	Growth                 []growth
	Answers                map[string]int
	Notes                  []string
	Problems               []string
}

// The bounds of memory. A victim may grow by allowed; slack is on top, because a
// heap may double before the collector ends a cycle, and because the peak
// counts what the honest client and a late cycle take as well.
const (
	allowed = 64 << 20
	slack   = 64 << 20
	// roomy is the peak up to which the growth of a coordinator is not compared at full
	// size: below 384 MiB (roomyMemory of cmd/muster-coordinator) its heap grows to five
	// times the live objects.
	roomy = 384<<20 + slack
)

// slower is how many times the undisturbed p99 the honest client's may be. A p99
// of at most noticeable is not compared: garbage collection decides it.
const (
	slower     = 3
	noticeable = 25 * time.Millisecond
)

func (s *scene) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// play runs the attack and judges it. Problems are in s.problems.
func (s *scene) play() {
	s.result = result{Case: s.name, Row: s.attack.row, Level: string(s.attack.level), Mode: s.attack.mode, Coordinators: s.coordinators}
	if err := s.prepare(); err != nil {
		s.problem("before the attack: %v", err)
		return
	}
	s.attacks++
	s.node, s.dir = fmt.Sprintf("evil-%d", s.attacks), s.t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s.ctx = ctx
	s.stage.watch(cancel)
	defer s.stage.watch(nil)
	if err := s.run(); err != nil {
		s.problem("%v", err)
	}
	if faults := s.stage.take(); len(faults) > 0 {
		s.problems = append(faults, s.problems...)
	}
	s.judge()
	s.result.Problems = s.problems
}

// lasts is how long the attack goes on.
func (s *scene) lasts() time.Duration {
	d, own := 1500*time.Millisecond, s.attack.lasts
	if *long {
		d, own = 6*time.Second, max(s.attack.lasts, s.attack.lastsLong)
	}
	if own != 0 {
		d = own
	}
	return d
}

// voteSent counts false votes in the report of an attack.
const voteSent = "vote: sent"

// spec is what the attack's program gets to know.
func (s *scene) spec() (evil.Spec, error) {
	spec := evil.Spec{
		Mode: s.attack.mode, Cluster: cluster.Name, Node: s.node, IP: s.attacker.IP, Dir: s.dir, RESTToken: s.tenants.attacker, CAFile: s.c.CAFile(),
		Want: s.attack.want, Tokens: s.tenants.bad, Victim: s.tenants.victim,
		Size: 1, For: s.lasts(),
	}
	if *long {
		spec.Size = 5
	}
	if slices.Contains(s.attack.want, voteSent) {
		spec.Until = voteSent
	}
	for _, p := range s.c.Coordinators {
		spec.Coordinators = append(spec.Coordinators, evil.Coordinator{
			GRPC: p.Address(cluster.GRPCPort), REST: p.Address(cluster.RESTPort), Serf: p.SerfAddress(),
		})
	}
	// The leader first: it is the one that attacks hurt.
	if leader, _ := s.c.Leader(s.ctx); leader != nil {
		slices.SortStableFunc(spec.Coordinators, func(a, b evil.Coordinator) int {
			own := leader.Address(cluster.GRPCPort)
			return bytes.Compare([]byte{byte(min(1, len(strings.TrimPrefix(a.GRPC, own))))}, []byte{byte(min(1, len(strings.TrimPrefix(b.GRPC, own))))})
		})
	}
	for _, a := range s.c.Agents {
		spec.Agents = append(spec.Agents, evil.Target{Node: string(a.Node), GRPC: a.Address(cluster.AgentPort)})
	}
	var err error
	switch s.attack.mode {
	case "deposed-leader", "coordinator-floods":
		spec.Certificate, err = s.deposedLeader(s.ctx)
	default:
		if s.attack.level == a1 {
			spec.BootstrapToken, err = s.c.Token(s.ctx, resource.NodeID(s.node), false)
		}
	}
	return spec, err
}

// run runs the attack's program beside the honest client.
func (s *scene) run() error {
	spec, err := s.spec()
	if err != nil {
		return fmt.Errorf("prepare the attacker: %w", err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	was, err := before(s.c)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := s.attacker.Command(self)
	if *long { // attackers on other hosts leave the client's processors alone
		program = s.attacker.Command("/usr/bin/env", "nice", "-n", "19", self)
	}
	program.Env = append(os.Environ(), evil.Variable+"="+string(text), "GOMEMLIMIT=2GiB")
	program.Dir = s.dir
	stdin, err := program.StdinPipe() // its end ends the program
	if err != nil {
		return err
	}
	stdout, err := program.StdoutPipe()
	if err != nil {
		return err
	}
	log := &bytes.Buffer{}
	program.Stderr = log
	if err := program.Start(); err != nil {
		return err
	}
	stop := time.AfterFunc(4*time.Minute, func() { _ = program.Process.Kill() }) // it may have ended
	lines := bufio.NewReader(stdout)
	err = s.beside(lines)
	if err != nil {
		stdin.Close()
	}
	rest, _ := io.ReadAll(lines)
	stop.Stop()
	stdin.Close()
	if other := program.Wait(); err == nil && other != nil {
		err = fmt.Errorf("the attack's program: %w\n%s", other, tail(log.Bytes()))
	}
	if err == nil {
		if err = json.Unmarshal(bytes.TrimSpace(rest), &s.report); err != nil {
			err = fmt.Errorf("the report of the attack's program: %w: %q", err, rest)
		}
	}
	s.result.Growth = grown(s.c, was)
	s.cleanUp()
	return err
}

// beside runs the honest client, the bait and the case's own part from the
// moment when the attacker is in place until it ends.
func (s *scene) beside(lines *bufio.Reader) error {
	line, err := lines.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != evil.ReadyLine {
		return fmt.Errorf("the attack's program is not in place: %q, %w", line, err)
	}
	client := begin(s.ctx, s.c.ClientOf(s.tenants.honest), s.node)
	s.lay()
	var during error
	if s.attack.during != nil {
		during = s.attack.during(s)
	}
	// The program writes its report when the attack is over.
	if _, err := lines.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		during = errors.Join(during, err)
	}
	client.await(s.ctx, samples()/4, patience)
	disturbed, err := client.end()
	s.result.Undisturbed, s.result.Disturbed = s.undisturbed, disturbed
	if err != nil {
		s.problem("the honest client: %v", err)
	}
	if disturbed.Count == 0 {
		s.problem("the honest client got nothing to run during the attack")
	}
	return during
}

// lay submits the bait. What becomes of it is the attacker's business.
func (s *scene) lay() {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	name := "bait-" + s.node
	var err error
	switch s.attack.bait {
	case oneBait:
		a := small(name)
		a.Spec.Resources.Requests[resource.GPU] = "1"
		a.Spec.Scheduling.NodeSelector = map[string]string{"muster.dev/node": s.node}
		_, err = s.c.Client.CreateAllocation(ctx, "default", a, sdk.CreateOptions{IdempotencyKey: name})
	case gangBait:
		// 13 times 2 GPUs fill three nodes of 8 and the attacker's of 2.
		_, err = s.c.Client.CreateJob(ctx, "default", cluster.Gang(name, 13, 2), sdk.CreateOptions{IdempotencyKey: name})
	}
	if err != nil {
		s.problem("the bait: %v", err)
	}
}

// cleanUp takes away what the attack has left and waits until the honest nodes
// are ready.
func (s *scene) cleanUp() {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	name := "bait-" + s.node
	_, _ = s.c.Client.DeleteAllocation(ctx, "default", name, 0) // there may be none
	_, _ = s.c.Client.DeleteJob(ctx, "default", name, 0)
	if err := s.poll(time.Minute, s.honestReady); err != nil {
		s.problem("after the attack: %v", err)
	}
}

// poll is programs.Poll until the scene is over.
func (s *scene) poll(within time.Duration, check func() error) error {
	var last error
	if err := programs.Poll(within, func() error {
		if s.ctx.Err() != nil {
			return nil
		}
		last = check()
		return last
	}); err != nil {
		return err
	}
	return last
}

// honestReady reports which honest node is not ready.
func (s *scene) honestReady() error {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	for _, a := range s.c.Agents {
		n, err := s.c.Client.Node(ctx, string(a.Node))
		if err != nil {
			return err
		}
		if n.Status.Phase != "Ready" {
			return fmt.Errorf("%s is %s", a.Node, n.Status.Phase)
		}
	}
	return nil
}

// judge compares what happened with what was expected.
func (s *scene) judge() {
	s.result.Answers, s.result.Notes = s.report.Answers, s.report.Notes
	if s.report.Error != "" {
		s.problem("the attack could not be made: %s", s.report.Error)
	}
	for _, never := range s.attack.never {
		if s.answered(never) && !(raced && strings.HasSuffix(never, ": 5")) {
			s.problem("the attacker got the answer %q: %v", never, s.report.Answers)
		}
	}
	if !raced {
		s.judgeAnswers()
	}
	if shown := s.attack.shown; shown != "" && s.c != nil {
		if err := s.poll(10*time.Second, func() error { return s.shows(shown) }); err != nil {
			s.problem("%v", err)
		}
	}
	if s.attack.after != nil && s.c != nil && len(s.problems) == 0 {
		if err := s.attack.after(s); err != nil {
			s.problem("after the attack: %v", err)
		}
	}
	if !raced {
		s.judgeCosts()
	}
}

// judgeAnswers compares the answers with those of the case.
func (s *scene) judgeAnswers() {
	for _, want := range s.attack.want {
		if !s.answered(want) {
			s.problem("the attacker got no answer %q, but %v", want, s.report.Answers)
		}
	}
	for _, said := range s.attack.said {
		if !s.noted(said) {
			s.problem("no answer to the attacker has %q, but %v", said, s.report.Notes)
		}
	}
	for _, odd := range s.beyondWanted() {
		s.problem("the attacker got the answer %q, and the case has %v and %v alone", odd, s.attack.want, s.attack.may)
	}
}

// judgeCosts compares memory and the honest client's latency with their bounds.
func (s *scene) judgeCosts() {
	for _, g := range s.result.Growth {
		if *long && g.Peak <= roomy && strings.HasPrefix(g.Process, "coordinator") {
			continue
		}
		if most := allowed + slack + s.attack.keeps; g.more() > most {
			s.problem("%s grew by %d MiB (from %d to %d), more than %d", g.Process, g.more()>>20, g.Before>>20, g.Peak>>20, most>>20)
		}
	}
	if d := s.result.Disturbed.P99; *long && d > max(noticeable, s.attack.slowest, slower*s.undisturbed.P99) {
		s.problem("the honest client's p99 is %s, more than %d times the undisturbed %s", d, slower, s.undisturbed.P99)
	}
}

// beyondWanted are the answers that the case does not have: those of a label for which the
// case has an answer, but another one. A request may end without an answer, as the attack
// ends amid some.
func (s *scene) beyondWanted() (odd []string) {
	right := slices.Concat(s.attack.want, s.attack.may)
	for answer := range s.report.Answers {
		label, what, _ := strings.Cut(answer, ": ")
		named := slices.ContainsFunc(right, func(r string) bool { return strings.HasPrefix(r, label+": ") })
		ended := what == "no answer" || what == codes.Canceled.String()
		if named && !ended && !slices.ContainsFunc(right, func(r string) bool { return strings.HasPrefix(answer, r) }) {
			odd = append(odd, answer)
		}
	}
	slices.Sort(odd)
	return odd
}

// answered reports whether an answer begins with the text.
func (s *scene) answered(beginning string) bool {
	for answer := range s.report.Answers {
		if strings.HasPrefix(answer, beginning) {
			return true
		}
	}
	return false
}

// noted reports whether an answer to the attacker has a text.
func (s *scene) noted(text string) bool {
	return slices.ContainsFunc(s.report.Notes, func(n string) bool { return strings.Contains(n, text) })
}

// shows reports whether the attacker's node shows a text to operators.
func (s *scene) shows(text string) error {
	n, shown, err := s.shown()
	if err != nil {
		return err
	}
	if !strings.Contains(shown, text) {
		return fmt.Errorf("node %s does not show %q: %s, conditions %v", s.node, text, n.Status.Phase, n.Status.Conditions)
	}
	return nil
}

// shown is the attacker's node as the API shows it, also as JSON.
func (s *scene) shown() (*api.Node, string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	n, err := s.c.Client.Node(ctx, s.node)
	if err != nil {
		return nil, "", fmt.Errorf("node %s: %w", s.node, err)
	}
	text, err := json.Marshal(n)
	return n, string(text), err
}

func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }

// keyring is the file of an honest agent's gossip keys.
func keyring(a *cluster.Agent) string { return filepath.Join(a.Dir, "identity", "keyring.json") }
