package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
)

const (
	// aheadWarn and aheadError are the differences of clocks that matter: times are
	// compared by people in logs, and certificates and tokens by machines.
	aheadWarn  = 2 * time.Second
	aheadError = time.Minute
	// soon is the time before the end of a certificate of a coordinator, at which it
	// should have been renewed; authoritySoon that of an authority, which needs an
	// operator.
	soon          = 24 * time.Hour
	authoritySoon = 90 * 24 * time.Hour
	// behindWarn is the number of revisions by which a coordinator's view may lag.
	behindWarn = 10000
)

// Judge makes the findings of a cluster's facts. subject names the cluster.
func (f Facts) Judge(now time.Time, subject string) Report {
	var findings []Finding
	for _, judge := range []func(time.Time) []Finding{
		f.judgeProbes, f.judgeAccess, f.judgeRoster, f.judgeClocks, f.judgeCertificates, f.judgeVersions, f.judgeLevel, f.judgeNodes, f.judgeNames, f.judgeQuotas, f.judgeRing,
	} {
		findings = append(findings, judge(now)...)
	}
	var skipped []Skipped
	for _, check := range slices.Sorted(maps.Keys(f.blind)) {
		skipped = append(skipped, Skipped{check, f.blind[check]})
	}
	return newReport(subject, clusterChecks, skipped, findings)
}

// storeRemedies mend a fault of the store, by the reason of the answer to /readyz.
var storeRemedies = map[string]string{
	api.StoreOutOfSpace: `muster delete job NAME, for jobs that have ended; then: rev=$(etcdctl endpoint status --write-out=json | grep -o '"revision":[0-9]*' | head -1 | cut -d: -f2); ` +
		"etcdctl compact $rev; etcdctl defrag --cluster; etcdctl alarm disarm. Where this gives no space: start etcd with a larger --quota-backend-bytes",
	api.StoreReadOnly:     "etcdctl role grant-permission ROLE --prefix=true readwrite /registry/, for the role of etcdUsername",
	api.StoreNotAnswering: "etcdctl endpoint health --cluster; etcdctl endpoint status --cluster; on the hosts of etcd: the disk, the network, journalctl -u etcd",
}

func (f Facts) judgeProbes(time.Time) (list []Finding) {
	for _, p := range f.probes {
		switch {
		case p.broken != nil:
			list = append(list, *p.broken)
		case !p.ready:
			list = append(list, Finding{
				Error, checkReady, p.endpoint, "the coordinator answers and is not ready: " + p.notReady,
				cmp.Or(storeRemedies[p.reason], "on that host: journalctl -u muster-coordinator -n 50; with external etcd: etcdctl endpoint health --cluster"),
			})
		}
	}
	return list
}

func (f Facts) judgeAccess(time.Time) []Finding {
	if f.refused == nil {
		return nil
	}
	remedy := "muster config set-context --current --token TOKEN, with the tokenFile's content of the coordinator"
	if f.refused.Code == 403 {
		remedy = "ask an admin for a token with that right; muster config view shows the one in use"
	}
	return []Finding{{Error, checkAccess, "token", fmt.Sprintf("the coordinator refuses the token: %d %s", f.refused.Code, f.refused.Message), remedy}}
}

// judgeRoster judges the coordinators as one of them sees all.
func (f Facts) judgeRoster(time.Time) (list []Finding) {
	leaders := 0
	for _, c := range f.coordinators {
		switch {
		case c.Role == api.LeaderRole:
			leaders++
		case c.Role == "":
			list = append(list, Finding{
				Error, checkReady, c.ID, "the other coordinators do not hear this one: " + c.Message, "on its host: systemctl status muster-coordinator",
			})
		case c.Behind > behindWarn:
			list = append(list, Finding{
				Warning, checkReady, c.ID, fmt.Sprintf("its view is %d revisions behind the newest", c.Behind),
				"on its host: look at its load and its network to etcd; etcdctl endpoint status --cluster",
			})
		}
	}
	if len(f.coordinators) > 0 && leaders == 0 {
		list = append(list, Finding{
			Error, checkReady, "leader", fmt.Sprintf("none of %d coordinators leads: nothing is placed", len(f.coordinators)),
			"wait for an election (40 s at most), then: etcdctl endpoint health --cluster",
		})
	}
	return list
}

func (f Facts) judgeClocks(time.Time) (list []Finding) {
	for _, p := range f.probes {
		off := max(p.ahead, -p.ahead) - p.slack
		if p.broken != nil || p.slack == 0 || off <= aheadWarn {
			continue
		}
		side := "ahead of"
		if p.ahead < 0 {
			side = "behind"
		}
		severity := Warning
		if off > aheadError {
			severity = Error
		}
		list = append(list, Finding{
			severity, checkClock, p.endpoint, fmt.Sprintf("its clock is %s %s this host's (±%s)", max(p.ahead, -p.ahead).Round(100*time.Millisecond), side, p.slack.Round(100*time.Millisecond)),
			"on both hosts: timedatectl; on the one that is wrong: timedatectl set-ntp true",
		})
	}
	return list
}

func (f Facts) judgeCertificates(now time.Time) (list []Finding) {
	for _, p := range f.probes {
		if c := p.certificate; c != nil && c.NotAfter.Sub(now) < soon {
			list = append(list, Finding{
				Warning, checkCertificates, p.endpoint, fmt.Sprintf("its certificate ends at %s, in %s, and was not renewed", stamp(c.NotAfter), c.NotAfter.Sub(now).Round(time.Minute)),
				"on its host: journalctl -u muster-coordinator | grep certificate; then restart it",
			})
		}
	}
	for _, a := range f.authorities {
		at, err := time.Parse(time.RFC3339, a.Status.Expires)
		if err != nil || at.Sub(now) >= authoritySoon {
			continue
		}
		severity := Warning
		if at.Sub(now) < soon {
			severity = Error
		}
		list = append(list, Finding{
			severity, checkCertificates, "authority " + a.Metadata.Name, fmt.Sprintf("its certificate ends at %s, and %d nodes have a certificate by it", a.Status.Expires, a.Status.Nodes),
			"muster ca rotate",
		})
	}
	for _, o := range f.operators {
		at, err := time.Parse(time.RFC3339, o.Status.Expires)
		if err == nil && o.Status.Revoked == "" && at.Before(now) {
			list = append(list, Finding{
				Note, checkCertificates, "operator " + o.Metadata.Name, "the certificate ended at " + o.Status.Expires, "muster ca operator " + o.Metadata.Name + ", where it is still needed",
			})
		}
	}
	return list
}

// judgeVersions compares coordinators, agents and this program with the
// coordinator that answered first.
func (f Facts) judgeVersions(time.Time) (list []Finding) {
	by := map[string][]string{}
	first := ""
	for _, p := range f.probes {
		if p.broken != nil {
			continue
		}
		if first == "" {
			first = p.version.Version
		}
		by[p.version.Version] = append(by[p.version.Version], p.endpoint)
		if p.version.APIVersion != api.APIVersion {
			list = append(list, Finding{
				Error, checkVersions, p.endpoint, fmt.Sprintf("it speaks API %s, and this program %s", p.version.APIVersion, api.APIVersion), "install the same release of muster here",
			})
		}
	}
	if len(by) > 1 {
		var parts []string
		for _, version := range slices.Sorted(maps.Keys(by)) {
			parts = append(parts, fmt.Sprintf("%s at %s", version, strings.Join(by[version], ", ")))
		}
		list = append(list, Finding{
			Warning, checkVersions, "coordinators", "they are of different versions: " + strings.Join(parts, "; "), "bring the older ones to the newest version, followers first, the leader last",
		})
	}
	for _, n := range f.nodes {
		if v := n.Status.AgentVersion; v != "" && first != "" && v != first {
			list = append(list, Finding{
				Warning, checkVersions, n.Metadata.Name, fmt.Sprintf("its agent is %s, the coordinators are %s", v, first), "on its host: install the release of the coordinators, then: systemctl restart muster-agent",
			})
		}
	}
	if first != "" && first != f.client {
		list = append(list, Finding{
			Warning, checkVersions, "muster", fmt.Sprintf("this program is %s, the coordinators are %s", f.client, first), "install the release of the coordinators here",
		})
	}
	return list
}

func (f Facts) judgeNodes(time.Time) (list []Finding) {
	for _, n := range f.nodes {
		for _, c := range n.Status.Conditions {
			if finding, ok := judgeCondition(n.Metadata.Name, n.Status.Phase, c); ok {
				list = append(list, finding)
			}
		}
		if n.Spec.Unschedulable {
			list = append(list, Finding{Note, checkNodes, n.Metadata.Name, "the node is cordoned: it takes no new work", "muster uncordon " + n.Metadata.Name})
		}
	}
	return list
}

// nodeRemedies are the commands that mend a node that is not ready, by the
// reason of its condition Ready; NODE stands for its name.
var nodeRemedies = map[string]string{
	"AgentUnreachable":   "on its host: systemctl status muster-agent; from the leader's host: nc -vz HOST 8472. Only if the machine is off: muster fence NODE",
	"LeaseExpired":       "on its host: systemctl status muster-agent. Only if the machine is off: muster fence NODE",
	"DiskFull":           "on its host: df -h /var/lib/muster-agent; make room",
	"MemoryPressure":     "on its host: ps aux --sort=-rss | head; stop what takes the memory, or raise reserved.memory",
	"HostDiffers":        "on its host: systemctl restart muster-agent",
	"Unregistered":       "on its host: journalctl -u muster-agent -n 50",
	"AwaitingApproval":   "muster describe node NODE, then muster node approve NODE",
	"Quarantined":        "muster describe node NODE, then muster reconcile NODE",
	"Fenced":             "when the machine is back: systemctl restart muster-agent on its host",
	"ConfirmedDead":      "when the machine is repaired, start its agent; else muster delete node NODE",
	"ProtocolViolation":  "muster describe node NODE; once the agent is mended: muster uncordon NODE",
	"Banned":             "muster node unban NODE, where the reason is gone",
	"RegistrationUnread": "wait a moment and look again",
}

func judgeCondition(node, phase string, c api.Condition) (Finding, bool) {
	find := func(severity Severity, message, remedy string) (Finding, bool) {
		return Finding{severity, checkNodes, node, message, strings.ReplaceAll(remedy, "NODE", node)}, true
	}
	switch {
	case c.Type == "Ready" && c.Status != "True":
		severity := Error
		if c.Reason == "RegistrationUnread" || c.Reason == "MemoryPressure" {
			severity = Warning
		}
		return find(severity, strings.TrimSuffix(fmt.Sprintf("%s since %s (%s): %s", phase, orUnknown(c.LastTransitionTime), c.Reason, c.Message), ": "), nodeRemedies[c.Reason])
	case c.Type == "DiskPressure" && c.Status == "True":
		return find(Error, "its disk is full ("+c.Reason+"): "+c.Message, nodeRemedies["DiskFull"])
	case c.Type == "AwaitingApproval" && c.Status == "True":
		return find(Warning, "it has more than was approved ("+c.Reason+"): "+c.Message, nodeRemedies["AwaitingApproval"])
	case c.Type == "MemoryPressure" && c.Status == "True":
		return find(Warning, "it is short of memory: "+c.Message, nodeRemedies["MemoryPressure"])
	case c.Type == "CgroupLimited" && c.Status == "True":
		return find(Warning, "it offers more than its agent's cgroup may use: "+c.Message, "in the agent's configuration: reserved.memory, reserved.cpus; then: systemctl restart muster-agent")
	case c.Type == "DuplicateAgent" && c.Status == "True":
		return Finding{Error, checkNames, node, c.Message, "on both hosts: muster doctor --config /etc/muster/agent.yaml compares the name"}, true
	case c.Type == "DuplicateAddress" && c.Status == "True" && c.Reason == "AddressTaken":
		return Finding{Error, checkNames, node, c.Message, "muster delete node " + node + ", where the host was renamed"}, true
	case c.Type == "OrphanProcesses" && c.Status == "True":
		return find(Warning, "processes that no grant has use its devices: "+c.Message, "on its host: stop them; muster describe node NODE names them")
	case c.Type == "KubeletPool" && c.Status == "False":
		return find(Warning, "its device plugin does not reach the kubelet: "+c.Message, "on its host: systemctl status kubelet; docs/kubernetes.md has the causes")
	case c.Type == "GPUHealthy" && c.Status == "False":
		return find(Warning, "devices are not well: "+strings.TrimSuffix(c.Message, "; "), "muster describe node NODE; docs/health.md says what ends each state")
	case c.Type == "Suspect" && c.Status == "True":
		return find(Warning, "it does not answer reservations as it should: "+c.Message, "on its host: journalctl -u muster-agent -n 50")
	}
	return Finding{}, false
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown time"
	}
	return s
}

// again and within: so many registrations of a node in so short a time are no
// restarts of an operator.
const (
	again  = 5
	within = 10 * time.Minute
)

// judgeRegistrations finds a node that registers again and again: its agent
// crashes, or two agents have its name.
func judgeRegistrations(n api.Node, now time.Time) (Finding, bool) {
	times := n.Status.Registrations
	if len(times) < again {
		return Finding{}, false
	}
	first, err := time.Parse(time.RFC3339, times[len(times)-again])
	if err != nil || now.Sub(first) > within {
		return Finding{}, false
	}
	return Finding{
		Error, checkNames, n.Metadata.Name, fmt.Sprintf("it has registered %d times since %s: its agent crashes, or two agents have this name", again, times[len(times)-again]),
		"on its host: journalctl -u muster-agent -n 100; muster doctor --config /etc/muster/agent.yaml compares the name",
	}, true
}

// judgeNames finds hosts that are known twice: two agents that share an address,
// two nodes of one host name, or
// a node that registers again and again.
func (f Facts) judgeNames(now time.Time) (list []Finding) {
	for _, n := range f.nodes {
		if finding, ok := judgeRegistrations(n, now); ok {
			list = append(list, finding)
		}
	}
	for _, kind := range []string{"Agent", "Hostname"} {
		by := map[string][]string{}
		for _, n := range f.nodes {
			for _, a := range n.Status.Addresses {
				if a.Type == kind && a.Address != "" {
					by[a.Address] = append(by[a.Address], n.Metadata.Name)
				}
			}
		}
		for _, address := range slices.Sorted(maps.Keys(by)) {
			nodes := by[address]
			if len(nodes) < 2 || kind == "Hostname" && loopbackAgents(f.nodes, nodes) {
				continue
			}
			slices.Sort(nodes)
			what := "the address " + address
			if kind == "Hostname" {
				what = "the host name " + address
			}
			list = append(list, Finding{
				Warning, checkNames, strings.Join(nodes, ", "), fmt.Sprintf("%d nodes have %s: the host was renamed, or its configuration was copied", len(nodes), what),
				"set nodeID in each agent's configuration; muster delete node NAME for the one that is gone",
			})
		}
	}
	return list
}

// loopbackAgents reports whether all agents of some nodes are on the loopback, as
// those of muster dev are, which share one host on purpose.
func loopbackAgents(all []api.Node, names []string) bool {
	for _, n := range all {
		if !slices.Contains(names, n.Metadata.Name) {
			continue
		}
		for _, a := range n.Status.Addresses {
			host, _, err := net.SplitHostPort(a.Address)
			if a.Type == "Agent" && (err != nil || !net.ParseIP(host).IsLoopback()) {
				return false
			}
		}
	}
	return true
}

// judgeRing compares the ring's members with the nodes.
func (f Facts) judgeRing(time.Time) (list []Finding) {
	if f.blind[checkRing] != "" || f.blind[checkNodes] != "" {
		return nil
	}
	agents := map[string]bool{}
	for _, m := range f.members {
		at := net.JoinHostPort(m.Addr.String(), fmt.Sprint(m.Port))
		switch {
		case m.Tags["role"] != "agent":
		case m.Status != "alive":
			list = append(list, Finding{Warning, checkRing, m.Name, fmt.Sprintf("the member at %s is %s", at, m.Status), "on its host: systemctl status muster-agent; if it is gone for good: serf force-leave " + m.Name})
			agents[m.Name] = true
		default:
			agents[m.Name] = true
			if !slices.ContainsFunc(f.nodes, func(n api.Node) bool { return n.Metadata.Name == m.Name }) {
				list = append(list, Finding{Warning, checkRing, m.Name, fmt.Sprintf("the member at %s is an agent and no registered node", at), "on its host: journalctl -u muster-agent -n 50, which says why it is refused"})
			}
		}
	}
	for _, n := range f.nodes {
		if !agents[n.Metadata.Name] {
			list = append(list, Finding{
				Warning, checkRing, n.Metadata.Name, fmt.Sprintf("the node is no member of the ring of %d members", len(f.members)),
				"on its host: gossip.join and gossip.serfBind of the agent's configuration, and udp and tcp port 7946 of the firewall; then: serf join ADDRESS",
			})
		}
	}
	return list
}
