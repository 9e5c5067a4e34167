package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

const (
	clusterToken = "0123456789abcdef0123456789abcdef"
	adminToken   = "fedcba9876543210fedcba9876543210"
)

// write puts a file with mode 0600 into a fresh folder.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func host() (string, error) { return "head-1", nil }

// read is what serve does with a file, without flags.
func read(path string) (config, error) {
	c := defaults()
	return c, configfile.Read(path, &c)
}

func TestBadConfigIsRefusedByFieldAndValue(t *testing.T) {
	cluster, admin := write(t, "token", clusterToken), write(t, "admin-token", adminToken)
	open := write(t, "open-token", clusterToken)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	short, empty := write(t, "short-token", "secret"), write(t, "empty-token", " \n")
	same, twin := write(t, "same-token", clusterToken+"\n"), write(t, "twin-token", adminToken)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const nameRule = "want 1 to 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends"
	for name, c := range map[string]struct{ yaml, want string }{
		"an unknown field":                {"dataDirectory: /x", `unknown field "dataDirectory"`},
		"an unknown nested field":         {"gossip: {serf: x}", `unknown field "gossip.serf"`},
		"a serf RPC port for all":         {"gossip: {serfRPC: 192.0.2.1:7374}", `gossip.serfRPC: address "192.0.2.1:7374" is not on the loopback interface`},
		"a serf RPC token of nowhere":     {"gossip: {serfRPCTokenFile: /nowhere}", "gossip.serfRPCTokenFile: token file: open /nowhere"},
		"an unknown field of a quota":     {"namespaces: {a: {limit: 1}}", `unknown field "namespaces.a.limit"`},
		"a bad cluster":                   {"cluster: Über", `cluster: "Über": ` + nameRule},
		"a bad id":                        {"id: a/b", `id: "a/b": ` + nameRule},
		"a relative data folder":          {"dataDir: here", `dataDir: "here": want an absolute path`},
		"an address without port":         {"restListen: 127.0.0.1", `restListen: "127.0.0.1": want HOST:PORT`},
		"an address beyond the loopback":  {"restListen: 0.0.0.0:8470", `restListen: address "0.0.0.0:8470" is not on the loopback interface; without TLS use 127.0.0.1 or [::1]`},
		"a port out of range":             {"grpcListen: 127.0.0.1:99999", `grpcListen: "127.0.0.1:99999": port "99999" is outside 0..65535`},
		"a serf address elsewhere":        {"gossip: {serfBind: '8.8.8.8:1'}", `gossip.serfBind: address "8.8.8.8:1" is not on the loopback interface; without TLS use 127.0.0.1 or [::1]`},
		"a capacity address elsewhere":    {"gossip: {capacityBind: '[::]:1'}", `gossip.capacityBind: address "[::]:1" is not on the loopback interface; without TLS use 127.0.0.1 or [::1]`},
		"a join address without port":     {"gossip: {join: [x]}", `gossip.join[0]: "x": want HOST:PORT`},
		"a join address with port 0":      {"gossip: {join: ['127.0.0.1:7946', '127.0.0.1:0']}", `gossip.join[1]: "127.0.0.1:0": port 0 cannot be reached`},
		"an empty etcd endpoint":          {"etcdEndpoints: ['']", "etcdEndpoints[0]: \"\": want HOST:PORT"},
		"a lease without unit":            {"leaseTTL: '5'", `leaseTTL: "5": want a number and a unit, such as "10s" or "1m30s"`},
		"a lease that is a number":        {"leaseTTL: 5", `leaseTTL: "5": want a number and a unit, such as "10s" or "1m30s"`},
		"a lease out of range":            {"leaseTTL: 100ms", "leaseTTL: 100ms is outside 1s..1m"},
		"a bad log level":                 {"log: {level: loud}", `log.level: "loud": want debug, info, warn or error`},
		"a bad log format":                {"log: {format: xml}", `log.format: "xml": want text or json`},
		"a bad namespace":                 {"namespaces: {Team_A: {}}", "namespaces.Team_A: want 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends"},
		"a bad admission":                 {"namespaces: {a: {admission: maybe}}", `namespaces.a.admission: "maybe": want reject or queue`},
		"an unknown policy of growth":     {"admission: {growth: maybe}", `admission.growth: "maybe": want allow or approve`},
		"an unknown policy of loss":       {"deviceLost: stop", `deviceLost: "stop": want keep or evict`},
		"no policy of loss":               {"deviceLost: ''", `deviceLost: "": want keep or evict`},
		"an unknown policy of fate":       {"unsatisfiable: queue", `unsatisfiable: "queue": want wait or reject`},
		"no policy of fate":               {"unsatisfiable: ''", `unsatisfiable: "": want wait or reject`},
		"an unknown preemption policy":    {"preemptionPolicy: Always", `preemptionPolicy: "Always": want PreemptLowerPriority, OwnQuota or Never`},
		"no preemption policy":            {"preemptionPolicy: ''", `preemptionPolicy: "": want PreemptLowerPriority, OwnQuota or Never`},
		"ports of work upside down":       {"workPorts: 30000-20000", `workPorts: "30000-20000": want FIRST-LAST, ports of 1024 to 65535 such as 20000-29999`},
		"ports of work of the system":     {"workPorts: 80-2000", `workPorts: "80-2000": want FIRST-LAST`},
		"an unknown placement policy":     {"placementPolicy: random", `placementPolicy: "random": want balanced, fragmentation, packed or spread`},
		"no placement policy":             {"placementPolicy: ''", `placementPolicy: "": want balanced, fragmentation, packed or spread`},
		"an unknown resource":             {"namespaces: {a: {quota: {disk: 1}}}", `namespaces.a.quota: disk: unknown resource: this version allocates cpu, muster.io/cores, memory, ephemeral-storage, hugepages-<size>`},
		"a quota of half a core":          {"namespaces: {a: {quota: {muster.io/cores: 500m}}}", `namespaces.a.quota: muster.io/cores: "500m" is not a whole number`},
		"a quota of half a huge page":     {"namespaces: {a: {quota: {hugepages-2Mi: 1Mi}}}", `namespaces.a.quota: hugepages-2Mi: "1Mi" is not a multiple of the page size 2Mi`},
		"a quota of odd huge pages":       {"namespaces: {a: {quota: {hugepages-3Mi: 3Mi}}}", `namespaces.a.quota: hugepages-3Mi: "hugepages-3Mi": want a page size as in hugepages-2Mi`},
		"a quota of a misspelt profile":   {"namespaces: {a: {quota: {nvidia.com/mig-1g.10gb+me: 1}}}", `namespaces.a.quota: nvidia.com/mig-1g.10gb+me: "nvidia.com/mig-1g.10gb+me": want the spelling "nvidia.com/mig-1g.10gb.me"`},
		"a negative quota":                {"namespaces: {a: {quota: {memory: -1Gi}}}", `namespaces.a.quota: memory: quantity "-1Gi": negative`},
		"a quota that overflows":          {"namespaces: {a: {quota: {memory: 99999Ei}}}", `namespaces.a.quota: memory: quantity "99999Ei": larger`},
		"a group of a tree of no name":    {"namespaces: {a: {groups: {Org tree: x}}}", `namespaces.a.groups: "Org tree": want a tree's name, 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends`},
		"a group without a name":          {"namespaces: {a: {groups: {Org: ''}}}", "namespaces.a.groups.Org: empty: want the name of a leaf"},
		"groups in a list":                {"namespaces: {a: {groups: [Org]}}", "groups"},
		"an unknown quota option":         {"quota: {fewest: true}", `unknown field "quota.fewest"`},
		"a quota option in words":         {"quota: {settle: often}", "settle"},
		"a run time that is a number":     {"quota: {minRunTime: 5}", `quota.minRunTime: "5": want a number and a unit, such as "10s" or "1m30s"`},
		"a negative run time":             {"quota: {minRunTime: -1s}", "quota.minRunTime: -1s is outside 0s..168h0m0s"},
		"a run time of eight days":        {"quota: {minRunTime: 192h}", "quota.minRunTime: 192h0m0s is outside 0s..168h0m0s"},
		"a quota that is a list":          {"namespaces: {a: {quota: {cpu: [1]}}}", `namespaces.a.quota: cpu: quantity "[1]": not a number`},
		"a folder without TLS":            {"tls: {dir: /x}", `tls.dir: "/x": has no effect without tls.enabled`},
		"names without TLS":               {"tls: {names: [a]}", "tls.names: [\"a\"]: have no effect without tls.enabled"},
		"an advertised host without TLS":  {"advertise: 192.0.2.1", `advertise: "192.0.2.1": has no effect without tls.enabled`},
		"a certificate without its key":   {"tls: {enabled: true, caCertFile: /ca.pem}\ntokenFile: ''", "tls.caCertFile: \"/ca.pem\", tls.caKeyFile: \"\": want both"},
		"a relative key file":             {"tls: {enabled: true, caCertFile: /ca.pem, caKeyFile: ca.key}\ntokenFile: ''", `tls.caKeyFile: "ca.key": want an absolute path`},
		"a name with a blank":             {"tls: {enabled: true, names: ['a b']}\ntokenFile: ''", `tls.names[0]: "a b": want a host name or an IP address`},
		"a certificate of a second":       {"tls: {enabled: true, certTTL: 1s}\ntokenFile: ''", "tls.certTTL: 1s is outside 10s..9552h"},
		"a token beside TLS":              {"tls: {enabled: true}\ntokenFile: " + cluster, "unused with tls.enabled, where each party has a certificate; remove it"},
		"an address of enrolment, no TLS": {"enrollListen: '127.0.0.1:8475'", `enrollListen: "127.0.0.1:8475": has no effect without tls.enabled`},
		"metrics for all, without TLS":    {"metricsListen: 0.0.0.0:8474", `metricsListen: address "0.0.0.0:8474" is not on the loopback interface`},
		"a token of metrics of nowhere":   {"metricsTokenFile: /nowhere", "metricsTokenFile: token file: open /nowhere"},
		"the same token for metrics":      {"metricsTokenFile: " + twin, "holds the same token as metricsTokenFile " + twin + ": each scraper would be an administrator"},
		"a host name to advertise":        {"tls: {enabled: true}\nadvertise: gpu-1\ntokenFile: ''", `advertise: "gpu-1": want an IP address that others can reach`},
		"a certificate for no etcd":       {"etcdTLS: {caFile: /ca.pem}", `etcdTLS.caFile: "/ca.pem": has no effect without etcdEndpoints`},
		"a certificate for a plain etcd":  {"etcdEndpoints: ['127.0.0.1:2379']\netcdTLS: {caFile: /ca.pem}", `etcdTLS.caFile: "/ca.pem": has no effect on the plain etcdEndpoints[0] "127.0.0.1:2379"`},
		"a plain etcd elsewhere":          {"etcdEndpoints: ['http://etcd-1:2379']", `etcdEndpoints[0]: address "etcd-1:2379" is not on the loopback interface`},
		"an https etcd without a port":    {"etcdEndpoints: ['https://etcd-1']", `etcdEndpoints[0]: "etcd-1": want HOST:PORT`},
		"plain and https mixed":           {"etcdEndpoints: ['https://etcd-1:2379', 'http://127.0.0.1:2379']", `etcdEndpoints[1]: "http://127.0.0.1:2379": https and plain endpoints cannot be mixed (the first is "https://etcd-1:2379")`},
		"etcd's key without certificate":  {"etcdEndpoints: ['https://e:1']\netcdTLS: {keyFile: /key.pem}", `etcdTLS.certFile: "", etcdTLS.keyFile: "/key.pem": want both or none`},
		"etcd's authority by half":        {"etcdEndpoints: ['https://e:1']\netcdTLS: {caFile: ca.pem}", `etcdTLS.caFile: "ca.pem": want an absolute path`},
		"a user without a password":       {"etcdEndpoints: ['https://e:1']\netcdUsername: muster", `etcdUsername: "muster", etcdPasswordFile: "": want both or none`},
		"a password that is missing":      {"etcdEndpoints: ['https://e:1']\netcdUsername: muster\netcdPasswordFile: /nowhere/pw", "etcdPasswordFile: open /nowhere/pw: no such file or directory"},
		"a password others can read":      {"etcdEndpoints: ['https://e:1']\netcdUsername: muster\netcdPasswordFile: " + open, "etcdPasswordFile: " + open + ": mode 0644 lets others use it; run: chmod 0600 " + open},
		"a request as long as the lease":  {"etcdRequestTimeout: 2s", "etcdRequestTimeout: 2s is outside 50ms..1.25s, a quarter of leaseTTL"},
		"a slow connection":               {"etcdDialTimeout: 2m", "etcdDialTimeout: 2m0s is outside 100ms..1m0s"},
		"too many accounts":               {"decisions: {files: 10001}", "decisions.files: 10001 is outside 0..10000; 0 keeps none"},
		"a tiny account":                  {"decisions: {maxSize: 1k}", "decisions.maxSize: 1k is outside 1Mi..1Ti"},
		"too many files of the audit":     {"audit: {files: 10001}", "audit.files: 10001 is outside 0..10000; 0 keeps none"},
		"tiny files of the audit":         {"audit: {maxSize: 1k}", "audit.maxSize: 1k is outside 1Mi..1Ti"},
		"files of the audit of no size":   {"audit: {maxSize: big}", "audit.maxSize: quantity \"big\": not a number"},
		"a history in some database":      {"history: {dsn: 'mysql://u:secret@h/d'}", "history.dsn: want \"sqlite:/PATH\", \"postgres://USER@HOST/DATABASE\" or \"host=HOST dbname=DATABASE\"; the value is not shown, as it may have a password"},
		"a history in two databases":      {"history: {dsn: 'sqlite:/h', dsnFile: /dsn}", "history.dsnFile: history.dsn is set too: want one of them"},
		"a database that is missing":      {"history: {dsnFile: /nowhere/dsn}", "history.dsnFile: open /nowhere/dsn: no such file or directory"},
		"a database others can read":      {"history: {dsnFile: " + open + "}", "history.dsnFile: " + open + ": mode 0644 lets others use it; run: chmod 0600 " + open},
		"a spool somewhere":               {"history: {spoolDir: spool}", "history.spoolDir: \"spool\": want an absolute path, or \"\" for the folder history of dataDir"},
		"prices that are missing":         {"history: {prices: /nowhere/prices.yaml}", "history.prices: price list: open /nowhere/prices.yaml: no such file or directory"},
		"a short wait for a spool":        {"history: {spoolWait: 1s}", "history.spoolWait: 1s is outside 1m0s..168h0m0s"},
		"heartbeats for a minute":         {"history: {retention: {heartbeats: 1m}}", "history.retention.heartbeats: 1m0s is outside 24h0m0s..876000h0m0s"},
		"an audit for two days":           {"history: {retention: {auditLogs: 2d}}", `history.retention.auditLogs: "2d": want a number and a unit`},
		"a redis of another kind":         {"history: {redis: {address: 'http://u:secret@h'}}", "history.redis.address: redis address http://u:xxxxx@h: want redis://HOST:PORT/DATABASE"},
		"a redis password without redis":  {"history: {redis: {passwordFile: /pw}}", "history.redis.passwordFile: \"/pw\": has no effect without history.redis.address"},
		"a redis password for all to see": {"history: {redis: {address: 'redis://h', passwordFile: " + open + "}}", "history.redis.passwordFile: " + open + ": mode 0644 lets others use it; run: chmod 0600 " + open},
		"authorities of a plain redis":    {"history: {redis: {address: 'redis://h', caFile: " + open + "}}", "history.redis.caFile: " + open + ": no certificate in PEM"},
		"a redis authority by half":       {"history: {redis: {address: 'rediss://h', caFile: ca.pem}}", `history.redis.caFile: "ca.pem": want an absolute path`},
		"a key prefix with a blank":       {"history: {redis: {address: 'redis://h', keyPrefix: 'a b'}}", `history.redis.keyPrefix: "a b": want at most 128 bytes without blanks`},
		"an account of no size":           {"decisions: {maxSize: big}", "decisions.maxSize: quantity \"big\": not a number"},
		"no cluster token":                {"tokenFile: ''", "tokenFile: not set; it holds the token of agents and coordinators"},
		"no admin token":                  {"adminTokenFile: ''", "adminTokenFile: not set; it holds the token of operators and tenants"},
		"a missing token file":            {"tokenFile: /nowhere/token", "tokenFile: token file: open /nowhere/token: no such file or directory"},
		"a token others can read":         {"tokenFile: " + open, "tokenFile: token file " + open + ": mode 0644 lets others use it; run: chmod 0600 " + open},
		"one token for all":               {"adminTokenFile: " + same, "adminTokenFile: " + same + " holds the same token as tokenFile " + cluster + ", which every agent has: each agent would be an administrator; write another one: head -c 16 /dev/urandom"},
		"one token for serf and REST":     {"adminTokenFile: " + admin + "\ngossip: {serfRPCTokenFile: " + twin + "}", "adminTokenFile: " + admin + " holds the same token as gossip.serfRPCTokenFile " + twin + ": each user of serf would be an administrator"},
		"an empty token":                  {"adminTokenFile: " + empty, "adminTokenFile: token file " + empty + ": token: 0 characters, want at least 16"},
		"a pipe that nobody writes":       {"tokenFile: " + pipe, "tokenFile: token file " + pipe + ": not a regular file"},
		"a token that is too short":       {"adminTokenFile: " + short, "adminTokenFile: token file " + short + ": token: 6 characters, want at least 16"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.yaml
			if !strings.Contains(text, "tokenFile") {
				text += "\ntokenFile: " + cluster
			}
			if !strings.Contains(text, "adminTokenFile") {
				text += "\nadminTokenFile: " + admin
			}
			path := write(t, "coordinator.yaml", text)
			got, err := read(path)
			if err == nil {
				_, _, err = got.check(host)
			} else if !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name the file", err)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestEveryWrongFieldIsNamedAtOnce(t *testing.T) {
	c := defaults()
	c.Cluster, c.RESTListen = "", "x"
	_, _, err := c.check(host)
	const want = `cluster: "": want 1 to 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends
restListen: "x": want HOST:PORT
tokenFile: not set; it holds the token of agents and coordinators
adminTokenFile: not set; it holds the token of operators and tenants`
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestAHostWithoutANameNeedsAnID(t *testing.T) {
	c := defaults()
	_, _, err := c.check(func() (string, error) { return "", errors.New("hostname is unknown") })
	if err == nil || !strings.Contains(err.Error(), "hostname is unknown") {
		t.Errorf("got %v", err)
	}
}

func TestAGoodConfigIsRead(t *testing.T) {
	path := write(t, "coordinator.yaml", `
tokenFile: `+write(t, "token", clusterToken+"\n")+`
adminTokenFile: `+write(t, "admin-token", adminToken)+`
leaseTTL: 3s
namespaces:
  research: {tenant: physics, quota: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 16}, admission: queue}
  inference: {quota: {muster.io/cores: 32, hugepages-1Gi: 64Gi, nvidia.com/mig-1g.10gb: 8}}
  sandbox: {groups: {Org: "Research / NLP", services: batch}}
quota: {settle: true, evictAtHard: true, ignoreOverdrawn: true, fewestVictims: true, pinnedWithinQuota: true, minRunTime: 10m}
`)
	c, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := c.check(host)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "head-1" || got.LeaseTTL != 3*time.Second || got.ClusterToken.Secret() != clusterToken || got.AdminToken.Secret() != adminToken {
		t.Errorf("read %+v", got)
	}
	want := map[string]lead.Namespace{
		"research": {
			Tenant: "physics", Admission: "queue",
			Hard: resource.Vector{resource.CPU: 64_000, resource.Memory: 1 << 40, resource.GPU: 16_000},
		},
		"inference": {Hard: resource.Vector{resource.Cores: 32, "hugepages-1Gi": 64 << 30, "nvidia.com/mig-1g.10gb": 8}},
		"sandbox":   {Groups: map[string]string{"Org": "Research / NLP", "services": "batch"}},
	}
	if diff := cmp.Diff(want, got.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	options := quota.Options{
		Settle: true, EvictAtHard: true, IgnoreOverdrawn: true, FewestVictims: true, PinnedWithinQuota: true, MinRunTime: 10 * time.Minute,
	}
	if diff := cmp.Diff(options, got.Quota); diff != "" {
		t.Errorf("quota (-want +got):\n%s", diff)
	}
}

// example is the documented config file.
var example = filepath.Join("..", "..", "systemd", "muster-coordinator.yaml")

func TestTheExampleConfigIsTheDefault(t *testing.T) {
	got, err := read(example)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.TokenFile, want.AdminTokenFile = "/etc/muster/token", "/etc/muster/admin-token"
	want.EtcdEndpoints, want.Gossip.Join = []string{}, []string{}
	want.Namespaces = map[string]namespaceConfig{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs from the defaults (-want +got):\n%s", example, diff)
	}
}

func TestTheExampleConfigNamesEveryKey(t *testing.T) {
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys(reflect.TypeFor[config]()) {
		if !regexp.MustCompile(`(?m)^ *(# *)?` + key + `:`).Match(data) {
			t.Errorf("%s does not document %s", example, key)
		}
	}
}

// commented is an example in the file's comments: YAML behind "# ".
var commented = regexp.MustCompile(`(?m)^( *)# ([a-zA-Z]+:.*|  .*)$`)

// What stands commented out must be as good as the rest.
func TestTheExampleConfigsCommentsParse(t *testing.T) {
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	// A commented-out key replaces the one above it.
	replaced := regexp.MustCompile(`(?m)^( *)(etcdEndpoints|etcdTLS|join|namespaces): .*\n`).ReplaceAll(data, nil)
	path := write(t, "coordinator.yaml", string(commented.ReplaceAll(replaced, []byte("$1$2"))))
	c, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	c.TLS.Enabled, c.TokenFile, c.AdminTokenFile = true, "", write(t, "admin-token", adminToken) // as the comments say
	c.EtcdPasswordFile = write(t, "etcd-password", "secret\n")
	c.Gossip.SerfRPCTokenFile, c.MetricsTokenFile = write(t, "serf-rpc-token", clusterToken), write(t, "metrics-token", "0123456789abcdef-metrics")
	got, _, err := c.check(host)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Namespaces) != 1 || len(got.Etcd.Endpoints) == 0 || got.Etcd.TLS.KeyFile == "" || got.Etcd.Password != "secret" || got.Etcd.RequestTimeout != time.Second || len(got.Join) == 0 || got.SerfRPC.Token == "" || got.ID == "head-1" || got.EnrollListen == "" {
		t.Errorf("the examples are not all read: %+v", got)
	}
}

// keys lists the names of a configuration's fields, nested ones included.
func keys(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Map:
		return keys(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	var names []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
		names = append(names, keys(t.Field(i).Type)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestThePolicyOfGrowth(t *testing.T) {
	for doc, want := range map[string]bool{"": false, "admission: {}": false, "admission: {growth: allow}": false, "admission: {growth: approve}": true} {
		c, err := read(write(t, "config.yaml", doc+"\ntokenFile: "+write(t, "token", clusterToken)+"\nadminTokenFile: "+write(t, "admin-token", adminToken)))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := c.check(host)
		if err != nil || got.ApproveGrowth != want {
			t.Errorf("%q: growth waits %t (%v), want %t", doc, got.ApproveGrowth, err, want)
		}
	}
}

// With TLS hosts come from any network: growth waits for an operator where nothing is set.
func TestGrowthWaitsByDefaultWithTLS(t *testing.T) {
	for _, c := range []struct {
		growth     string
		tls, waits bool
	}{{"", false, false}, {"", true, true}, {growthAllow, true, false}, {growthAllow, false, false}, {growthApprove, true, true}, {growthApprove, false, true}} {
		if waits, err := (admissionConfig{Growth: c.growth}).check(c.tls); err != nil || waits != c.waits {
			t.Errorf("growth %q with TLS %t: waits %t (%v), want %t", c.growth, c.tls, waits, err, c.waits)
		}
	}
	if c := defaults(); c.Admission.Growth != "" || c.PreemptionPolicy != "PreemptLowerPriority" {
		t.Errorf("by default growth is %q and the preemptionPolicy %q", c.Admission.Growth, c.PreemptionPolicy)
	}
}

func TestThePolicyOfALostDevice(t *testing.T) {
	for doc, want := range map[string]bool{"": false, "deviceLost: keep": false, "deviceLost: evict": true} {
		c, err := read(write(t, "config.yaml", doc+"\ntokenFile: "+write(t, "token", clusterToken)+"\nadminTokenFile: "+write(t, "admin-token", adminToken)))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := c.check(host)
		if err != nil || got.EvictOnDeviceLost != want {
			t.Errorf("%q: units with a lost device are evicted: %t (%v), want %t", doc, got.EvictOnDeviceLost, err, want)
		}
	}
}

func TestThePolicyOfWorkThatCanNeverRun(t *testing.T) {
	for doc, want := range map[string]bool{"": false, "unsatisfiable: wait": false, "unsatisfiable: reject": true} {
		c, err := read(write(t, "config.yaml", doc+"\ntokenFile: "+write(t, "token", clusterToken)+"\nadminTokenFile: "+write(t, "admin-token", adminToken)))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := c.check(host)
		if err != nil || got.RejectUnsatisfiable != want {
			t.Errorf("%q: work that can never run is refused: %t (%v), want %t", doc, got.RejectUnsatisfiable, err, want)
		}
	}
}
