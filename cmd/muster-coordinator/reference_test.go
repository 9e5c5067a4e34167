package main

import (
	"testing"

	"github.com/musterd/muster/test/samplefile"
)

// sample is coordinator.yaml, with the ranges of its keys.
func sample() samplefile.File {
	return samplefile.File{
		Name: "muster-coordinator.yaml", Defaults: defaults(),
		Facts: map[string]samplefile.Fact{
			"leaseTTL":                       {Range: "1s to 1m", Within: []string{"1s", "1m"}, Outside: []string{"999ms", "61s"}},
			"etcdDialTimeout":                {Range: "100ms to 1m", Within: []string{"100ms", "1m"}, Outside: []string{"99ms", "61s"}},
			"etcdRequestTimeout":             {Range: "50ms to leaseTTL/4", Within: []string{"50ms", "1250ms"}, Outside: []string{"49ms", "1251ms"}},
			"quota.minRunTime":               {Range: "0s to 168h", Within: []string{"0s", "168h"}, Outside: []string{"-1s", "168h1s"}},
			"limits.allocationsPerNamespace": {Range: "1 to 1000000", Unit: "allocations", Within: []string{"1", "1000000"}, Outside: []string{"0", "1000001"}},
			"decisions.files":                {Range: "0 to 10000", Unit: "files", Within: []string{"0", "10000"}, Outside: []string{"-1", "10001"}},
			"decisions.maxSize":              {Range: "1Mi to 1Ti", Unit: "bytes", Within: []string{"1Mi", "1Ti"}, Outside: []string{"1Ki", "2Ti"}},
			"admission.growth":               {Range: "allow, approve", Within: []string{"allow", "approve"}, Outside: []string{"never"}},
			"namespaces.NAME.admission":      {Range: "reject, queue", Within: []string{"reject", "queue"}, Outside: []string{"drop"}},
			"tls.certTTL":                    {Range: "10s to 9552h", Within: []string{"10s", "9552h"}, Outside: []string{"9s", "9553h"}},
			"log.level":                      {Range: "debug, info, warn, error", Within: []string{"debug", "error"}, Outside: []string{"loud"}},
			"log.format":                     {Range: "text, json", Within: []string{"text", "json"}, Outside: []string{"xml"}},
		},
		Check: func(t *testing.T, yaml string) error {
			t.Helper()
			c, err := read(write(t, "coordinator.yaml", yaml+"tokenFile: "+write(t, "token", clusterToken)+"\nadminTokenFile: "+write(t, "admin-token", adminToken)+"\n"))
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
