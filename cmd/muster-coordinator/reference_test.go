package main

import (
	"strings"
	"testing"

	"github.com/musterd/muster/test/samplefile"
)

// sample is coordinator.yaml, with the ranges of its keys.
func sample() samplefile.File {
	return samplefile.File{
		Name: "muster-coordinator.yaml", Defaults: defaults(),
		Facts: map[string]samplefile.Fact{
			"leaseTTL":                               {Range: "1s to 1m", Within: []string{"1s", "1m"}, Outside: []string{"999ms", "61s"}},
			"etcdDialTimeout":                        {Range: "100ms to 1m", Within: []string{"100ms", "1m"}, Outside: []string{"99ms", "61s"}},
			"etcdRequestTimeout":                     {Range: "50ms to leaseTTL/4", Within: []string{"50ms", "1250ms"}, Outside: []string{"49ms", "1251ms"}},
			"quota.minRunTime":                       {Range: "0s to 168h", Within: []string{"0s", "168h"}, Outside: []string{"-1s", "168h1s"}},
			"limits.allocationsPerNamespace":         {Range: "1 to 1000000", Unit: "allocations", Within: []string{"1", "1000000"}, Outside: []string{"0", "1000001"}},
			"limits.documents":                       {Range: "1Mi to 1Ti", Unit: "bytes", Within: []string{"1Mi", "1Ti"}, Outside: []string{"1Ki", "2Ti", "big"}},
			"limits.requestsPerMinute":               {Range: "0 to 10000000", Unit: "requests", Within: []string{"0", "10000000"}, Outside: []string{"-1", "10000001"}},
			"decisions.files":                        {Range: "0 to 10000", Unit: "files", Within: []string{"0", "10000"}, Outside: []string{"-1", "10001"}},
			"audit.files":                            {Range: "0 to 10000", Unit: "files", Within: []string{"0", "10000"}, Outside: []string{"-1", "10001"}},
			"audit.maxSize":                          {Range: "1Mi to 1Ti", Unit: "bytes", Within: []string{"1Mi", "1Ti"}, Outside: []string{"1Ki", "2Ti"}},
			"history.spoolWait":                      {Range: "1m to 168h", Within: []string{"1m", "168h"}, Outside: []string{"59s", "169h"}},
			"history.retention.completedAllocations": {Range: "24h to 876000h", Within: []string{"24h", "876000h"}, Outside: []string{"23h", "876001h"}},
			"history.retention.heartbeats":           {Range: "24h to 876000h", Within: []string{"24h", "876000h"}, Outside: []string{"23h", "876001h"}},
			"history.retention.usageHourly":          {Range: "24h to 876000h", Within: []string{"24h", "876000h"}, Outside: []string{"23h", "876001h"}},
			"history.retention.preemptionEvents":     {Range: "24h to 876000h", Within: []string{"24h", "876000h"}, Outside: []string{"23h", "876001h"}},
			"history.retention.auditLogs":            {Range: "24h to 876000h", Within: []string{"24h", "876000h"}, Outside: []string{"23h", "876001h"}},
			"history.retention.quotaHistory":         {Range: "24h to 876000h", Within: []string{"24h", "876000h"}, Outside: []string{"23h", "876001h"}},
			"decisions.maxSize":                      {Range: "1Mi to 1Ti", Unit: "bytes", Within: []string{"1Mi", "1Ti"}, Outside: []string{"1Ki", "2Ti"}},
			"admission.growth":                       {Range: "allow, approve", Within: []string{"allow", "approve", "\"\""}, Outside: []string{"never"}},
			"deviceLost":                             {Range: "keep, evict", Within: []string{"keep", "evict"}, Outside: []string{"drop"}},
			"unsatisfiable":                          {Range: "wait, reject", Within: []string{"wait", "reject"}, Outside: []string{"drop"}},
			"preemptionPolicy":                       {Range: "PreemptLowerPriority, OwnQuota, Never", Within: []string{"OwnQuota", "Never"}, Outside: []string{"Always"}},
			"workPorts":                              {Range: "FIRST-LAST, ports of 1024 to 65535", Within: []string{"1024-65535", "4000-4000"}, Outside: []string{"1023-2000", "4000", "4001-4000", "60000-65536"}},
			"placementPolicy":                        {Range: "balanced, fragmentation, packed, spread", Within: []string{"balanced", "spread"}, Outside: []string{"random"}},
			"namespaces.NAME.admission":              {Range: "reject, queue", Within: []string{"reject", "queue"}, Outside: []string{"drop"}},
			"tls.certTTL":                            {Range: "10s to 9552h", Within: []string{"10s", "9552h"}, Outside: []string{"9s", "9553h"}},
			"log.level":                              {Range: "debug, info, warn, error", Within: []string{"debug", "error"}, Outside: []string{"loud"}},
			"log.format":                             {Range: "text, json", Within: []string{"text", "json"}, Outside: []string{"xml"}},
		},
		Check: func(t *testing.T, yaml string) error {
			t.Helper()
			if !strings.HasPrefix(yaml, "tokenFile:") {
				yaml += "tokenFile: " + write(t, "token", clusterToken) + "\n"
			}
			if !strings.HasPrefix(yaml, "adminTokenFile:") {
				yaml += "adminTokenFile: " + write(t, "admin-token", adminToken) + "\n"
			}
			c, err := read(write(t, "coordinator.yaml", yaml))
			if err == nil {
				_, _, err = c.check(host)
			}
			return err
		},
	}
}

func TestEveryKeyHasAText(t *testing.T)          { sample().Texts(t) }
func TestRangesOfKeysAreKept(t *testing.T)       { sample().Ranges(t) }
func TestTheReferenceOfKeysIsFresh(t *testing.T) { sample().Page(t) }

// noAddress are values that are no address to bind without TLS.
var noAddress = []string{"zzz", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:-1", "0.0.0.0:1", "192.0.2.1:1"}

// noPeer are lists of addresses that cannot be reached without TLS.
var noPeer = []string{"[zzz]", "['127.0.0.1']", "['127.0.0.1:70000']", "['127.0.0.1:0']", "['192.0.2.1:1']", "['']"}

func TestEveryKeyRefusesBadValues(t *testing.T) {
	sample().Bad(t, map[string][]string{
		"cluster": {`""`, "a_b", strings.Repeat("z", 64)}, "id": {"-a", "a/b", strings.Repeat("z", 64)}, "dataDir": {"here", `""`},
		"tls.dir": {"/x"}, "audit.dir": {"here"}, "history.dsnFile": {"/nowhere/dsn"}, "history.spoolDir": {"here"}, "history.prices": {"/nowhere/prices.yaml"},
		"history.redis.address": {"http://h", "h:6379"}, "history.redis.passwordFile": {"/nowhere/password"}, "history.redis.caFile": {"/nowhere/ca.pem"}, "history.redis.keyPrefix": {"'a b'", strings.Repeat("z", 129)},
		"tls.caCertFile": {"/x"}, "tls.caKeyFile": {"/x"}, "tls.names": {"[zzz]"}, "advertise": {"zzz"},
		"tokenFile": {"/nowhere/token", `""`}, "adminTokenFile": {"/nowhere/token", `""`}, "restListen": noAddress, "grpcListen": noAddress,
		"metricsListen": noAddress, "metricsTokenFile": {"/nowhere/token"}, "enrollListen": {"127.0.0.1:8475", "zzz"},
		"oidc.issuer": {"http://login.example.org", "login"}, "oidc.clientID": {"muster"}, "oidc.caFile": {"/nowhere/ca.pem"}, "oidc.userClaim": {strings.Repeat("z", 257)},
		"oidc.groupsClaim": {strings.Repeat("z", 257)}, "oidc.prefix": {strings.Repeat("z", 33)}, "oidc.tenantClaim": {"org"}, "oidc.rolesClaim": {"roles"},
		"oidc.roles": {"{users: root}", "{users: editor}"}, "oidc.requiredClaims": {"{hd: ''}"}, "oidc.scopes": {"['a b']"}, "oidc.algorithms": {"[HS256]"},
		"etcdEndpoints": noPeer, "etcdTLS.caFile": {"/x"}, "etcdTLS.certFile": {"/x"}, "etcdTLS.keyFile": {"/x"}, "etcdTLS.serverName": {"zzz"},
		"etcdUsername": {"zzz"}, "etcdPasswordFile": {"/nowhere/password"},
		"gossip.join": noPeer, "gossip.serfBind": noAddress, "gossip.serfRPC": noAddress, "gossip.capacityBind": noAddress,
		"gossip.serfRPCTokenFile": {"/nowhere/token"},
		"namespaces.NAME.quota":   {"{hugepages-3Mi: 3Mi}", "{cpu: lots}", "{cpu: -1}", "{cpu: NaN}", "{cpu: 99999Ei}"},
		"namespaces.NAME.groups":  {"{'a b': c}", "{a: ''}"},
	}, map[string]string{
		"namespaces.NAME.tenant": "any text names a tenant",
		"history.dsn":            "it may have a password, so no refusal shows it; the table of bad configurations has them",
	})
}
