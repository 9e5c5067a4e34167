package hostile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/hostile/evil"
)

// This file holds the cases' own parts: beside the attack (during) and after it.

func nothing(*scene) error { return nil }

// honestStaysReady looks at the honest nodes for as long as the attack lasts.
func honestStaysReady(s *scene) error {
	until := time.Now().Add(s.lasts() / 2)
	for time.Now().Before(until) && s.ctx.Err() == nil {
		if err := s.honestReady(); err != nil {
			return fmt.Errorf("during the attack: %w", err)
		}
		hold(s.ctx, 200*time.Millisecond)
	}
	return nil
}

// nodeIsSmall bounds what the store keeps of the attacker's node.
func nodeIsSmall(s *scene) error {
	const most = 128 << 10
	_, text, err := s.shown()
	if err == nil && len(text) > most {
		err = fmt.Errorf("node %s is shown in %d bytes, more than %d", s.node, len(text), most)
	}
	return err
}

// countStatusWrites bounds how often one host makes coordinators write.
func countStatusWrites(s *scene) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.lasts())
	defer cancel()
	writes, last := 0, resource.Revision(0)
	start := time.Now()
	for ctx.Err() == nil {
		kv, found, _, err := s.c.Store.Get(ctx, record.NodeStatusKey(resource.NodeID(s.node)))
		if err != nil {
			break
		}
		if found && kv.ModRev != last {
			writes, last = writes+1, kv.ModRev
		}
		hold(ctx, 5*time.Millisecond)
	}
	// One write a second and a burst of some are what honest hosts need.
	if most := 30 + int(time.Since(start)/time.Second); writes > most {
		return fmt.Errorf("the status of %s was written %d times in %s, more than %d", s.node, writes, time.Since(start).Round(time.Second), most)
	}
	return nil
}

// replaceCertificate enrolls the attacker's node anew, with a token for a
// replacement: the certificate that the attacker has is over then.
func replaceCertificate(s *scene) error {
	token, err := s.c.Token(s.ctx, resource.NodeID(s.node), true)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "replacement")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, "bootstrap-token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	var addresses []string
	for _, p := range s.c.Coordinators {
		addresses = append(addresses, p.Address(cluster.GRPCPort))
	}
	ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
	defer cancel()
	_, err = agent.OpenIdentity(ctx, agent.IdentityConfig{
		Cluster: cluster.Name, Node: resource.NodeID(s.node), Dir: filepath.Join(dir, "identity"), TokenFile: file, Coordinators: addresses,
		Log: slog.New(slog.DiscardHandler),
	})
	return err
}

// banNode bans the attacker's node.
func banNode(s *scene) error {
	code, text, err := s.rest(http.MethodPost, "/api/v1/nodes/"+s.node+"/ban", `{"spec":{"reason":"hostile"}}`)
	if err == nil && code/100 != 2 {
		err = fmt.Errorf("ban %s: %d %s", s.node, code, text)
	}
	return err
}

// keysAreKept checks that no attacker's key reached honest agents or the store.
func keysAreKept(s *scene) error {
	return s.poll(30*time.Second, func() error {
		var errs []error
		for _, a := range s.c.Agents {
			text, err := os.ReadFile(keyring(a))
			if err == nil && strings.Contains(string(text), evil.AttackerKey) {
				err = fmt.Errorf("%s keeps the attacker's key", a.Node)
			}
			errs = append(errs, err)
		}
		kv, _, _, err := s.c.Store.Get(s.ctx, record.GossipKeysKey)
		if err == nil && strings.Contains(string(kv.Value), evil.AttackerKey) {
			err = fmt.Errorf("the store holds the attacker's key")
		}
		errs = append(errs, err)
		return errors.Join(errs...)
	})
}

// hostnameIsKept checks that an honest node's name is its own alone.
func hostnameIsKept(s *scene) error {
	taken := string(s.c.Agents[0].Node)
	return s.poll(5*time.Second, func() error {
		n, _, err := s.shown()
		if err != nil {
			return err
		}
		if got := n.Metadata.Labels["kubernetes.io/hostname"]; got == taken {
			return fmt.Errorf("node %s has the label kubernetes.io/hostname=%s", s.node, got)
		}
		if got := n.Metadata.Labels["muster.dev/node"]; got != s.node {
			return fmt.Errorf("node %s has the label muster.dev/node=%s", s.node, got)
		}
		return nil
	})
}

// othersAreShown checks that no honest member of the gang is shown on the
// attacker's node with the attacker's devices.
func othersAreShown(s *scene) error {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	n, err := s.c.Client.Node(ctx, s.node)
	if err != nil {
		return err
	}
	if len(n.Status.Allocations) > 1 { // 2 GPUs are room for one member
		return fmt.Errorf("node %s is shown with %v", s.node, n.Status.Allocations)
	}
	return nil
}

// secret is the name of a tenant's work that waits.
const secret = "secret-project-x"

// waitInQueue submits work that waits, for the ring to ask about.
func waitInQueue(s *scene) error {
	a := small(secret)
	a.Spec.Scheduling.NodeSelector = map[string]string{"example.org/nowhere": "yes"}
	_, err := s.c.Client.CreateAllocation(s.ctx, "default", a, sdk.CreateOptions{IdempotencyKey: secret + s.node})
	return err
}

// queueIsPrivate checks that the attacker read no tenant's name.
func queueIsPrivate(s *scene) error {
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
	defer cancel()
	if _, err := s.c.Client.DeleteAllocation(ctx, "default", secret, 0); err != nil && !cluster.NotFound(err) {
		return err
	}
	for _, note := range s.report.Notes {
		if strings.Contains(note, secret) {
			return fmt.Errorf("the ring told the attacker: %s", note)
		}
	}
	return nil
}

// noEscapes checks that no control character of the host reaches readers.
func noEscapes(s *scene) error {
	_, text, err := s.shown()
	if err != nil {
		return err
	}
	for _, bad := range []string{`\u001b`, `\u0007`, "\u202e", `\u202e`} {
		if strings.Contains(text, bad) {
			return fmt.Errorf("node %s is shown with %s: %.600s", s.node, bad, text)
		}
	}
	return nil
}

// usageIsPlausible checks that a usage beyond the host's capacity is not shown.
func usageIsPlausible(s *scene) error {
	n, _, err := s.shown()
	if err != nil {
		return err
	}
	for name, text := range n.Status.Usage {
		used, err := resource.ParseQuantity(text, 1)
		if err != nil || used > 1<<50 {
			return fmt.Errorf("node %s is shown using %s of %s", s.node, text, name)
		}
	}
	return nil
}

// enrollmentsLeaveATrace checks that operators can see guesses of tokens.
func enrollmentsLeaveATrace(s *scene) error {
	for _, p := range s.c.Coordinators {
		for line := range strings.SplitSeq(p.Log(), "\n") {
			if l := strings.ToLower(line); strings.Contains(l, "enroll") && (strings.Contains(l, "refused") || strings.Contains(l, "fail") || strings.Contains(l, "denied")) {
				return nil
			}
		}
	}
	code, text, err := s.rest(http.MethodGet, "/metrics", "")
	if err != nil || code != http.StatusOK {
		return fmt.Errorf("metrics: %d, %w", code, err)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, "enroll") && !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0") {
			return nil
		}
	}
	return errors.New("neither a log nor a metric of a coordinator shows the failed enrollments")
}

// rest sends a request of the operator to the leader.
func (s *scene) rest(method, path, body string) (code int, text string, err error) {
	trust, err := sdk.Trust(s.c.CAFile())
	if err != nil {
		return 0, "", err
	}
	transport := &http.Transport{TLSClientConfig: trust}
	defer transport.CloseIdleConnections()
	q, err := http.NewRequestWithContext(s.ctx, method, "https://"+s.c.Coordinators[0].Address(cluster.RESTPort)+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Authorization", "Bearer "+s.c.AdminToken())
	q.Header.Set("Content-Type", "application/json")
	answer, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(q)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	var b strings.Builder
	if _, err := copyAtMost(&b, answer.Body, 4<<20); err != nil {
		return 0, "", err
	}
	return answer.StatusCode, b.String(), nil
}

// avoided checks that the honest client's work did not go to the attacker again
// and again: a few tries, and a probe now and then.
func avoided(s *scene) error {
	tries := 0
	for _, answer := range []string{"Reserve: refused", "Reserve: not answered", "vote: sent late", "reply: sent"} {
		tries += s.report.Answers[answer]
	}
	if made := s.result.Disturbed.Count; 4*tries > made+20 {
		return fmt.Errorf("the leader tried %s %d times for %d allocations", s.node, tries, made)
	}
	return nil
}

// fencesAreBounded checks how many records one host could have made: the budget
// of a node, and what it refills in a minute.
func fencesAreBounded(s *scene) error {
	const most = 512 + 60
	if made := s.report.Answers["Resolve: a record was made"]; made > most {
		return fmt.Errorf("%s has had %d records of invented transactions made, more than %d", s.node, made, most)
	}
	return nil
}
