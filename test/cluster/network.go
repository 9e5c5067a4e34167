package cluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// routeLocalnet lets loopback addresses travel over cables.
const routeLocalnet = "/proc/sys/net/ipv4/conf/all/route_localnet"

// Host is a machine of a cluster: one address, one process.
type Host struct {
	Name string
	IP   string // 127.C.H.1

	net       *network
	namespace string // of the network; "" shares the test's
	rules     string // nftables rules in force
}

// Address is a port's.
func (h *Host) Address(port int) string { return fmt.Sprintf("%s:%d", h.IP, port) }

// command is a program that runs on the host.
func (h *Host) command(path string, args ...string) *exec.Cmd {
	if h.namespace == "" {
		return exec.Command(path, args...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", h.namespace, path}, args...)...)
}

// network is the cables of one cluster. The test itself is at 127.C.0.1.
type network struct {
	t       testing.TB
	number  int
	private bool

	mu    sync.Mutex
	hosts []*Host
}

// lastNumber counts the clusters of this process.
var lastNumber atomic.Int32

// The numbers that a cluster may have, and the port that holds one where
// several test programs share the machine's loopback interface.
const (
	firstNumber = 64
	endNumber   = 250
	numberPort  = 8469
)

func newNetwork(t testing.TB) *network {
	t.Helper()
	private, _ := Private()
	n := &network{t: t, private: private}
	if !private {
		n.number = takeNumber(t)
		return n
	}
	n.number = firstNumber + int(lastNumber.Add(1))
	if n.number >= endNumber {
		t.Fatalf("more than %d clusters in one run of the tests", endNumber-firstNumber)
	}
	bridge := n.bridge()
	n.must(tool("ip", "link", "add", bridge, "type", "bridge").
		then("ip", "address", "add", fmt.Sprintf("127.%d.0.1/16", n.number), "dev", bridge).
		then("ip", "link", "set", bridge, "up"))
	t.Cleanup(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, h := range n.hosts {
			n.must(tool("ip", "netns", "delete", h.namespace))
		}
		n.must(tool("ip", "link", "delete", bridge))
	})
	return n
}

// takeNumber finds a cluster number that nobody on this machine uses.
func takeNumber(t testing.TB) int {
	t.Helper()
	for number := firstNumber; number < endNumber; number++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.%d.0.1:%d", number, numberPort)); err == nil {
			t.Cleanup(func() { _ = l.Close() })
			return number
		}
	}
	t.Fatalf("no free cluster number: every 127.N.0.1:%d is in use", numberPort)
	return 0
}

func (n *network) bridge() string { return fmt.Sprintf("mb%d", n.number) }

func (n *network) must(chain tools) {
	n.t.Helper()
	if chain.err != nil {
		n.t.Fatal(chain.err)
	}
}

// host adds one to the network.
func (n *network) host(name string) *Host {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	index := len(n.hosts) + 1
	h := &Host{Name: name, IP: fmt.Sprintf("127.%d.%d.1", n.number, index), net: n}
	if n.private {
		h.namespace = fmt.Sprintf("m%d-%d", n.number, index)
		cable := fmt.Sprintf("mv%d-%d", n.number, index)
		within := func(args ...string) []string { return append([]string{"netns", "exec", h.namespace}, args...) }
		n.must(tool("ip", "netns", "add", h.namespace).
			then("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", h.namespace).
			then("ip", "link", "set", cable, "master", n.bridge(), "up").
			then("ip", within("sh", "-c", "echo 1 >"+routeLocalnet)...).
			then("ip", within("ip", "address", "add", h.IP+"/16", "dev", "eth0")...).
			then("ip", within("ip", "link", "set", "eth0", "up")...).
			then("ip", within("ip", "address", "add", "127.0.0.1/32", "dev", "lo")...).
			then("ip", within("ip", "link", "set", "lo", "up")...))
	}
	n.hosts = append(n.hosts, h)
	return h
}

// Fault is trouble for what arrives at To from From.
type Fault struct {
	From, To *Host
	// Loss is the share of packets that are dropped, in percent; 0 means all.
	Loss int
	// Ports narrow it to UDP and TCP from or to these ports; none means all.
	Ports []int
}

func (f Fault) rules() []string {
	verdict := "drop"
	if f.Loss > 0 {
		verdict = fmt.Sprintf("numgen random mod 100 < %d drop", f.Loss)
	}
	from := "ip saddr " + f.From.IP + " "
	if len(f.Ports) == 0 {
		return []string{from + verdict}
	}
	ports := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(f.Ports)), ", "), "[]")
	var rules []string
	for _, match := range []string{"tcp dport", "tcp sport", "udp dport", "udp sport"} {
		rules = append(rules, fmt.Sprintf("%s%s { %s } %s", from, match, ports, verdict))
	}
	return rules
}

// OneWay loses all that these hosts send to those.
func OneWay(from, to []*Host) []Fault {
	var faults []Fault
	for _, a := range from {
		for _, b := range to {
			if a != b {
				faults = append(faults, Fault{From: a, To: b})
			}
		}
	}
	return faults
}

// Cut loses everything between these hosts and those, both ways.
func Cut(some, others []*Host) []Fault { return append(OneWay(some, others), OneWay(others, some)...) }

// set puts these faults in force in place of all that were.
func (n *network) set(faults ...Fault) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	rules := map[*Host][]string{}
	for _, f := range faults {
		rules[f.To] = append(rules[f.To], f.rules()...)
	}
	for _, h := range n.hosts {
		slices.Sort(rules[h])
		text := strings.Join(rules[h], "\n")
		if text == h.rules {
			continue
		}
		h.rules = text
		n.apply(h, "delete table ip faults", "table ip faults {\nchain in {\ntype filter hook input priority 0\n"+text+"\n}\n}")
	}
}

// apply replaces one table of a host.
func (n *network) apply(h *Host, remove, table string) {
	n.t.Helper()
	if h.namespace == "" {
		n.t.Fatalf("host %s shares the machine's network: call NeedPrivate before Start", h.Name)
	}
	// Adding an empty table first makes its removal possible in any case.
	name := strings.TrimPrefix(remove, "delete ")
	script := "add " + name + "\n" + remove + "\n" + table + "\n"
	file := filepath.Join(n.t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		n.t.Fatal(err)
	}
	n.must(tool("ip", "netns", "exec", h.namespace, "nft", "-f", file))
}

// Divert sends what the host would send to one address to another: to a proxy
// of the test, say. It lasts; connections that are open stay as they are.
func (h *Host) Divert(to map[string]string) {
	var rules strings.Builder
	for from, via := range to {
		ip, port, err := net.SplitHostPort(from)
		if err != nil {
			h.net.t.Fatal(err)
		}
		fmt.Fprintf(&rules, "ip daddr %s tcp dport %s dnat to %s\n", ip, port, via)
	}
	h.net.apply(h, "delete table ip diverted", "table ip diverted {\nchain out {\ntype nat hook output priority -100\n"+rules.String()+"}\n}")
}

// Address is where the test can listen so that every host reaches it; the port
// is for the kernel to choose.
func (c *Cluster) Address() string { return fmt.Sprintf("127.%d.0.1:0", c.net.number) }
