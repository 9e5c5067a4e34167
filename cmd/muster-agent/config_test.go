package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/cmd/configfile"
)

const testToken = "0123456789abcdef0123456789abcdef"

// write puts a file with mode 0600 into a fresh folder.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func host() (string, error) { return "Gpu-17.Example", nil }

func TestBadConfigIsRefusedByFieldAndValue(t *testing.T) {
	token := write(t, "token", testToken)
	open := write(t, "open-token", testToken)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		yaml string
		want string
	}{
		"an unknown field":                 {"node: a", `unknown field "node"`},
		"nodeID in another case":           {"nodeid: x\nnodeID: z", `unknown field "nodeid", did you mean "nodeID"?`},
		"an unknown nested field":          {"gossip: {port: 1}", `unknown field "gossip.port"`},
		"a field twice":                    {"cluster: a\ncluster: b", `key "cluster" already set`},
		"a list where text belongs":        {"cluster: [a]", `cluster: ["a"]: want text`},
		"no YAML at all":                   {"cluster: [", "yaml"},
		"a bad cluster":                    {"cluster: Über", `cluster: "Über"`},
		"a bad node id":                    {"nodeID: a/b", `nodeID: "a/b"`},
		"a relative data folder":           {"dataDir: here", `dataDir: "here"`},
		"a mode that is a number":          {"assignmentsMode: 416", `assignmentsMode: "416": want "0600"`},
		"a mode that is an octal number":   {"assignmentsMode: 0640", "assignmentsMode (line 1): the value 0640 is the number 416 to some parsers of YAML"},
		"a mode that others may write":     {"assignmentsMode: '0666'", `assignmentsMode: "0666": want "0600"`},
		"an address without port":          {"listen: 127.0.0.1", `listen: "127.0.0.1"`},
		"an address beyond the loopback":   {"listen: 0.0.0.0:8472", `listen: address "0.0.0.0:8472" is not on the loopback`},
		"a port out of range":              {"metricsListen: 127.0.0.1:99999", `metricsListen: "127.0.0.1:99999": port "99999" is outside 0..65535`},
		"a coordinator beyond loopback":    {"coordinators: ['10.0.0.1:8471']", `coordinators[0]: address "10.0.0.1:8471"`},
		"a coordinator on port 0":          {"coordinators: ['127.0.0.1:0']", "coordinators[0]: \"127.0.0.1:0\": port 0"},
		"a bad label":                      {"labels: {'a b': c}", `labels: "a b"="c"`},
		"a bad CPU list":                   {"reserved: {cpus: 3-1}", `reserved.cpus: list element "3-1"`},
		"a negative quantity":              {"reserved: {memory: -1Gi}", `reserved.memory: quantity "-1Gi": negative`},
		"a quantity that overflows":        {"reserved: {memory: 99999Ei}", `reserved.memory: quantity "99999Ei": larger`},
		"a quantity that is a list":        {"reserved: {memory: [1]}", `reserved.memory: quantity "[1]": not a number`},
		"a duration without unit":          {"heartbeat: '10'", `heartbeat: "10": want a number and a unit`},
		"a duration that is a number":      {"heartbeat: 10", `heartbeat: "10": want a number and a unit`},
		"no time for the driver":           {"discovery: {timeout: 10ms}", "discovery.timeout: 10ms is outside 100ms..10m0s"},
		"a driver that may hang for ever":  {"discovery: {hangAfter: 1h}", "discovery.hangAfter: 1h0m0s is outside 100ms..10m0s"},
		"no rest between looks":            {"discovery: {retry: 0s}", "discovery.retry: 0s is outside 100ms..1h0m0s"},
		"a duration out of range":          {"heartbeat: 1ms", "heartbeat: 1ms is outside 100ms..5m"},
		"too short a limit":                {"assumeDeadAfter: 59s", "assumeDeadAfter: 59s is outside 1m0s..24h0m0s; 0s turns it off"},
		"a limit below nothing":            {"assumeDeadAfter: -1m", "assumeDeadAfter: -1m0s is outside"},
		"a limit that is no duration":      {"assumeDeadAfter: soon", `assumeDeadAfter: "soon": want a number and a unit`},
		"a stall that is no share":         {"memoryPressure: {stallPercent: 101}", "memoryPressure.stallPercent: 101 is outside 1..100 percent; memoryPressure.enabled: false turns it off"},
		"no stall":                         {"memoryPressure: {stallPercent: 0}", "memoryPressure.stallPercent: 0 is outside 1..100 percent"},
		"too much available memory":        {"memoryPressure: {availablePercent: 41}", "memoryPressure.availablePercent: 41 is outside 1..40 percent"},
		"a shortage without end":           {"memoryPressure: {clearAfter: 2h}", "memoryPressure.clearAfter: 2h0m0s is outside 1s..1h0m0s"},
		"the label of the limit":           {"labels: {muster.dev/assume-dead-after: 5m}", `labels: "muster.dev/assume-dead-after"="5m": assumeDeadAfter sets this label; remove it`},
		"a bad join address":               {"gossip: {enabled: true, join: ['x']}", `gossip.join[0]: "x"`},
		"a bad serf address":               {"gossip: {serfBind: '8.8.8.8:1'}", `gossip.serfBind: address "8.8.8.8:1"`},
		"a bad cell":                       {"gossip: {cell: 'A B'}", `gossip.cell: "A B"`},
		"nobody to talk to":                {"gossip: {enabled: false}", "coordinators: none, and gossip is off"},
		"a path to be ignored":             {"orphans: {ignore: [/usr/bin/x]}", `orphans.ignore[0]: "/usr/bin/x": want the name of a command`},
		"a bad log level":                  {"log: {level: loud}", `log.level: "loud"`},
		"a bad log format":                 {"log: {format: xml}", `log.format: "xml"`},
		"a bootstrap token without TLS":    {"bootstrapTokenFile: /x", `bootstrapTokenFile: "/x": nodes have certificates only with tls.enabled`},
		"an advertised host without TLS":   {"advertise: 192.0.2.1", `advertise: "192.0.2.1": without tls.enabled`},
		"a token beside TLS":               {"tls: {enabled: true}\ntokenFile: " + token, "unused with tls.enabled, where each node has a certificate; remove it"},
		"enrolment without TLS":            {"enrollment: ['127.0.0.1:8475']", `enrollment: ["127.0.0.1:8475"]: nodes enrol only with tls.enabled`},
		"a token of metrics of nowhere":    {"metricsTokenFile: /nowhere", "metricsTokenFile: token file: open /nowhere"},
		"nowhere to enroll":                {"tls: {enabled: true}\nbootstrapTokenFile: /x\ntokenFile: ''", "coordinators: none; to enroll by bootstrapTokenFile"},
		"an unspecified host to advertise": {"tls: {enabled: true}\nadvertise: '::'\ntokenFile: ''", `advertise: "::": want an IP address that others can reach`},
		"metrics beyond loopback":          {"metricsListen: 0.0.0.0:1", `metricsListen: address "0.0.0.0:1" is not on the loopback`},
		"no token file":                    {"tokenFile: ''", "tokenFile: not set"},
		"a missing token file":             {"tokenFile: /nowhere/token", "tokenFile: token file: open /nowhere/token"},
		"a token file that others can see": {"tokenFile: " + open, "chmod 0600"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.yaml
			if !strings.Contains(text, "tokenFile") {
				text += "\ntokenFile: " + token
			}
			path := write(t, "agent.yaml", text)
			read, err := readOver(path)
			if err != nil {
				if !strings.Contains(err.Error(), path) {
					t.Errorf("%v does not name the file", err)
				}
			} else {
				_, err = read.check(host)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A node enrols at the addresses of enrollment, where there are any, else at the
// coordinators'.
func TestWhereANodeEnrols(t *testing.T) {
	for yaml, want := range map[string][]string{
		"coordinators: ['192.0.2.1:8471']":                                      {"192.0.2.1:8471"},
		"coordinators: ['192.0.2.1:8471']\nenrollment: ['192.0.2.1:8475']":      {"192.0.2.1:8475"},
		"bootstrapTokenFile: /etc/muster/token\nenrollment: ['192.0.2.1:8475']": {"192.0.2.1:8475"},
	} {
		c, err := readOver(write(t, "agent.yaml", "tls: {enabled: true}\n"+yaml))
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.check(host)
		if err != nil {
			t.Errorf("%s: %v", yaml, err)
		}
		if got := s.enrollAt(); !slices.Equal(got, want) {
			t.Errorf("%s: the node enrols at %q, want %q", yaml, got, want)
		}
	}
}

func TestEveryWrongFieldIsNamedAtOnce(t *testing.T) {
	c := defaults()
	c.Cluster, c.Listen = "", "x"
	_, err := c.check(host)
	for _, want := range []string{"cluster:", "listen:", "tokenFile:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTheExampleConfigIsTheDefault(t *testing.T) {
	read, err := readOver(filepath.Join("..", "..", "systemd", "muster-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if read.TokenFile != "/etc/muster/token" {
		t.Errorf("token file %q", read.TokenFile)
	}
	read.TokenFile = write(t, "token", testToken)
	s, err := read.check(host)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	if s.Listen != want.Listen || s.Gossip.SerfBind != want.Gossip.SerfBind || s.Heartbeat != want.Heartbeat || !s.Gossip.Enabled ||
		!s.Orphans.Enabled || !slices.Equal(s.Orphans.Ignore, want.Orphans.Ignore) || s.MemoryPressure != want.MemoryPressure || s.memory.Stall != 1000 {
		t.Errorf("read %+v, want %+v", s.config, want)
	}
	if s.node != "gpu-17.example" {
		t.Errorf("node id %q, want the host's name in lower case", s.node)
	}
}

func TestAGoodConfigIsRead(t *testing.T) {
	token := write(t, "token", testToken+"\n")
	path := write(t, "agent.yaml", `
nodeID: n1
tokenFile: `+token+`
reserved: {cpus: "0-1", memory: 4Gi}
labels: {zone: a}
heartbeat: 1s
`)
	c, err := readOver(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.check(host)
	if err != nil {
		t.Fatal(err)
	}
	if s.node != "n1" || s.reservedCPUs.String() != "0-1" || s.reservedMemory != 4<<30 ||
		s.heartbeat != time.Second || s.token.Secret() != testToken || s.Labels["zone"] != "a" {
		t.Errorf("read %+v", s)
	}
}

// readOver reads a file over the defaults, as the program does.
func readOver(path string) (config, error) {
	c := defaults()
	err := configfile.Read(path, &c)
	return c, err
}
