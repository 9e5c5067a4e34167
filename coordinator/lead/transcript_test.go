package lead_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/storydoc"
)

// TestTranscripts tells stories of a leader: each line with > is an input, and
// below it are the effects that the leader leaves, those of the scheduling pass
// after it included. What an agent says is in brackets. Transactions are numbered
// as they are first mentioned; the transaction of a creation's compare is a guard,
// which is written if the creation's outcome stays unknown. Rewrite with
// -rewrite.
//
// The file lines.txt of test/storydoc lists the lines.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := newStory(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			for line := range strings.Lines(d.Input) {
				line = strings.TrimSpace(line)
				fmt.Fprintf(&s.told, "> %s\n", line)
				if !s.do(line) {
					d.Fatalf(t, "no input is %q", line)
				}
			}
			if d.Cmd == "before" {
				s.settle()
				s.told.Reset()
				return ""
			}
			text := s.told.String()
			s.told.Reset()
			return text
		})
	})
}

// do carries out one line; false if there is no such line.
func (s *story) do(line string) bool {
	words := strings.Fields(line)
	options := map[string]string{}
	for _, w := range words[1:] {
		if k, v, is := strings.Cut(w, "="); is {
			options[k] = v
		}
	}
	if a := s.agents[resource.NodeID(words[0])]; a != nil {
		return s.doAgent(resource.NodeID(words[0]), a, words[1:])
	}
	switch words[0] {
	case "nodes":
		for n := range storydoc.Number(words[1]) {
			s.addNode(resource.NodeID(fmt.Sprint("n", n+1)), nil)
		}
	case "node":
		node := resource.NodeID(words[1])
		s.addNode(node, options)
		if s.l != nil {
			s.connect(node)
		}
	case "declare": // before the node comes
		for _, w := range words[2:] {
			name, text, _ := strings.Cut(w, "=")
			s.declare(resource.NodeID(words[1]), name, text)
		}
	case "lead":
		s.lead()
	case "rule":
		s.doRule(words[1:], options)
	case "a":
		s.pass(time.Second)
		s.apply(lead.SecondPassed{})
	case "connect":
		s.connect(resource.NodeID(words[1]))
	case "stored":
		s.showStored(words[1])
	case "store":
		if last := len(s.asks) - 1; words[len(words)-1] == "newest" && last >= 0 {
			words, s.asks = words[:2], append([]post.Effect{s.asks[last]}, s.asks[:last]...)
		}
		f, known := map[string]fate{"answers": answered, "loses the answer": answerLost, "loses the write": writeLost}[strings.Join(words[1:], " ")]
		if !known {
			return false
		}
		s.storeAnswers(f)
	case "all":
		s.settle()
	default:
		if wait, err := time.ParseDuration(words[0]); err == nil {
			s.pass(wait)
			return true
		}
		return s.doClient(words, options)
	}
	return true
}

func (s *story) doAgent(node resource.NodeID, a *storyAgent, words []string) bool {
	switch words[0] {
	case "obeys":
		s.obey(node)
	case "refuses":
		s.refuse(node)
	case "stops":
		s.stop(node)
	case "leaves":
		a.connected, a.commands = false, nil
		s.apply(lead.AgentEvent{Event: grant.Disconnected{Node: node}})
	case "loses":
		s.setLost(node, storydoc.Number(words[1]), true)
		s.reportLost(node, words[1:])
	case "finds":
		s.setLost(node, storydoc.Number(words[1]), false)
	case "reports":
		s.reportLost(node, words[1:])
	case "is":
		host, _ := storyHost(s.t, node)
		var gpus []string
		for _, d := range host.Inventory.Devices {
			gpus = append(gpus, d.UUID)
		}
		if words[1] == "busy" {
			s.decide(a, ledger.Observed{Busy: gpus})
			return true
		}
		s.decide(a, ledger.Observed{Idle: gpus})
		s.apply(lead.AgentEvent{Event: grant.Occupied{Node: node, Occupancy: a.occupancy()}})
	default:
		return false
	}
	return true
}

// doClient carries out a client's request.
func (s *story) doClient(words []string, options map[string]string) bool {
	namespace := "default"
	if options["namespace"] != "" {
		namespace = options["namespace"]
	}
	grace := int64(storydoc.Number(options["grace"]))
	switch words[0] {
	case "create":
		s.create(namespace, storydoc.Document("Allocation", words[1], options))
	case "job":
		s.createJob(namespace, storydoc.Document("Job", words[1], options))
	case "delete":
		o := api.DeleteOptions{GracePeriodSeconds: &grace}
		if len(words) > 2 && words[2] == "background" {
			o.PropagationPolicy = api.Background
		}
		s.ask(lead.DeleteAllocation{Namespace: namespace, Name: words[1], Options: o})
	case "end":
		s.ask(lead.EndJob{Namespace: namespace, Name: words[1], Options: api.DeleteOptions{GracePeriodSeconds: &grace}, Remove: len(words) > 2})
	case "release":
		s.ask(lead.ReleaseAllocations{Namespace: namespace, Names: words[1:], Options: api.DeleteOptions{GracePeriodSeconds: &grace}})
	case "show":
		s.showObject(namespace, words[1])
	case "why":
		s.ask(lead.ExplainAllocation{Namespace: namespace, Name: words[1], Asked: lead.Asked{Operator: true}})
	case "evict":
		s.ask(lead.EvictUnit{Options: lead.EvictOptions{Namespace: namespace, Name: words[1]}, Notice: noticeOf(grace)})
	case "taint":
		key, effect, _ := strings.Cut(words[2], ":")
		s.ask(lead.PatchNode{Node: resource.NodeID(words[1]), Patch: api.NodePatch{MergeTaints: []api.Taint{{Key: key, Effect: effect}}}})
	case "fence":
		dead := len(words) > 2
		s.ask(lead.FenceNode{Node: resource.NodeID(words[1]), Options: api.FenceOptions{ConfirmDead: dead, Reason: "its power is off"}})
	case "tree":
		s.ask(storydoc.PutTree(words[1], words[2:]))
	case "rename":
		s.ask(lead.RenameQuotaNode{Tree: words[1], From: words[2], To: words[3]})
	case "look":
		s.showTree(words[1])
	case "mode":
		s.ask(lead.PatchQuotaMode{By: "ada", Patch: api.QuotaModePatch{Mode: words[1], Reason: options["reason"], Metadata: api.Preconditions{ResourceVersion: options["at"]}}})
	case "tenant":
		s.ask(lead.Put[api.Tenant]{Object: &api.Tenant{
			Kind: api.KindTenant, Metadata: api.ObjectMeta{Name: words[1]}, Spec: api.TenantSpec{Unsatisfiable: options["unsatisfiable"]},
		}})
	case "namespace":
		s.ask(storydoc.PutNamespace(words[1], options))
	case "queue":
		s.ask(storydoc.PutQueue(words[1], options))
	case "class":
		s.ask(storydoc.PutClass(words[1], options))
	case "move":
		s.ask(lead.PatchAllocation{Namespace: namespace, Name: words[1], Patch: storydoc.PatchOf(words[1], fmt.Sprintf(`{"spec":{"queue":%q}}`, words[2]))})
	case "grow":
		s.ask(lead.PatchJob{Namespace: namespace, Name: words[1], Patch: api.WorkPatch{Spec: []byte(`{"parallelism":` + words[2] + `}`)}})
	case "suspend", "resume":
		s.ask(lead.PatchAllocation{Namespace: namespace, Name: words[1], Patch: storydoc.PatchOf(words[1], fmt.Sprintf(`{"spec":{"suspend":%t}}`, words[0] == "suspend"))})
	case "remove":
		s.ask(storydoc.Remove(words[1], words[2]))
	case "bind":
		tree, group, _ := strings.Cut(words[2], "/")
		b := &api.QuotaBinding{Kind: api.KindQuotaBinding, Metadata: api.ObjectMeta{Name: words[1]}}
		b.Spec.Groups = map[string]string{tree: group}
		s.ask(lead.Put[api.QuotaBinding]{Object: b})
	default:
		return false
	}
	return true
}

// doRule configures the leaders that come.
func (s *story) doRule(words []string, options map[string]string) {
	switch words[0] {
	case "deviceLost":
		s.evictOnDeviceLost = words[1] == "evict"
	case "unsatisfiable":
		s.rejectUnsatisfiable = words[1] == "reject"
	case "placementPolicy":
		s.placementPolicy = words[1]
	case "preemptionPolicy":
		s.preemptionPolicy = words[1]
	case "requireNamespaces":
		s.requireNamespaces = true
	case "namespace":
		if s.namespaces == nil {
			s.namespaces = map[string]lead.Namespace{}
		}
		s.namespaces[words[1]] = lead.Namespace{Tenant: resource.TenantID(options["tenant"]), Admission: options["admission"]}
	default:
		s.t.Fatalf("no rule is %q", words[0])
	}
}

func noticeOf(grace int64) txn.EvictAsked {
	return txn.EvictAsked{GraceSeconds: grace, Reason: "evicted by an operator"}
}
