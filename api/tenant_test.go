package api

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	wholeTenant    = `{"apiVersion":"muster/v1","kind":"Tenant","metadata":{"name":"vision","labels":{"floor":"3"}},"spec":{"displayName":"Computer Vision","owner":"ada@example.org","contacts":["Zoë, room 3.14"]}}`
	wholeNamespace = `{"apiVersion":"muster/v1","kind":"Namespace","metadata":{"name":"vision-dev"},"spec":{"tenant":"vision","admission":"queue","unsatisfiable":"reject","deviceLost":"evict","priorityCeiling":0,"roleCeilings":{"editor":5},"defaultQueue":"research","limits":{"allocations":0,"waitingUnits":5},"idle":{"below":1,"for":"720h","then":"suspend"}}}`
)

func TestTenantsThatAreRefused(t *testing.T) {
	line := strings.Repeat("x", MaxLine)
	contacts := strings.TrimSuffix(strings.Repeat(`"a",`, MaxContacts+1), ",")
	cases := map[string]struct{ metadata, spec, want string }{
		"no name":                    {`{}`, `{}`, "metadata.name: required"},
		"a name with a dot":          {`{"name":"a.b"}`, `{}`, `metadata.name: "a.b" is not the name of a tenant`},
		"a name in upper case":       {`{"name":"Vision"}`, `{}`, `metadata.name: "Vision"`},
		"a namespace":                {`{"name":"a","namespace":"b"}`, `{}`, `metadata.namespace: "b": this kind is in no namespace`},
		"a display name of 257":      {`{"name":"a"}`, `{"displayName":"` + line + `x"}`, "spec.displayName: 257 bytes long, the limit is 256"},
		"an owner of 257":            {`{"name":"a"}`, `{"owner":"` + line + `x"}`, "spec.owner: 257 bytes long, the limit is 256"},
		"17 contacts":                {`{"name":"a"}`, `{"contacts":[` + contacts + `]}`, "spec.contacts: 17 entries, the limit is 16"},
		"an empty contact":           {`{"name":"a"}`, `{"contacts":["b"," "]}`, "spec.contacts[1]: empty"},
		"an escape of a terminal":    {`{"name":"a"}`, `{"owner":"\u001b[2J"}`, `spec.owner: "\x1b[2J" has a character at byte 0 that is not printed`},
		"two lines":                  {`{"name":"a"}`, `{"displayName":"a\nb"}`, `has a character at byte 1`},
		"text from right to left":    {`{"name":"a"}`, `{"contacts":["a\u202eb"]}`, `spec.contacts[0]: "a\u202eb" has a character at byte 1`},
		"requests below 0":           {`{"name":"a"}`, `{"requestsPerMinute":-1}`, "spec.requestsPerMinute: -1 is outside 1..10000000"},
		"requests above the bound":   {`{"name":"a"}`, `{"requestsPerMinute":10000001}`, "spec.requestsPerMinute: 10000001 is outside 1..10000000"},
		"a field of a namespace":     {`{"name":"a"}`, `{"admission":"queue"}`, "admission"},
		"a label that is no label":   {`{"name":"a","labels":{"-":"x"}}`, `{}`, "metadata.labels"},
		"contacts that are no array": {`{"name":"a"}`, `{"contacts":"b"}`, "spec.contacts"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, status := DecodeTenant([]byte(`{"kind":"Tenant","metadata":` + c.metadata + `,"spec":` + c.spec + `}`))
			if status == nil || !strings.Contains(status.Message, c.want) {
				t.Errorf("got %v, want %q", status, c.want)
			}
		})
	}
}

func TestNamespacesThatAreRefused(t *testing.T) {
	cases := map[string]struct{ metadata, spec, want string }{
		"no name":                      {`{}`, `{}`, "metadata.name: required"},
		"a name with a dot":            {`{"name":"a.b"}`, `{}`, `metadata.name: "a.b" is not the name of a namespace`},
		"a namespace":                  {`{"name":"a","namespace":"a"}`, `{}`, "this kind is in no namespace"},
		"a tenant that is no label":    {`{"name":"a"}`, `{"tenant":"A B"}`, `spec.tenant: "A B" is not the name of a tenant`},
		"a third admission":            {`{"name":"a"}`, `{"admission":"wait"}`, `spec.admission: "wait": want reject or queue`},
		"a third unsatisfiable":        {`{"name":"a"}`, `{"unsatisfiable":"queue"}`, `spec.unsatisfiable: "queue": want wait or reject`},
		"a third deviceLost":           {`{"name":"a"}`, `{"deviceLost":"Keep"}`, `spec.deviceLost: "Keep": want keep or evict`},
		"a ceiling below 0":            {`{"name":"a"}`, `{"priorityCeiling":-1}`, "spec.priorityCeiling: -1 is outside 0..1000000000"},
		"a ceiling above the greatest": {`{"name":"a"}`, `{"priorityCeiling":1000000001}`, "spec.priorityCeiling: 1000000001 is outside 0..1000000000"},
		"a ceiling by a class's name":  {`{"name":"a"}`, `{"priorityCeiling":"high-priority"}`, "spec.priorityCeiling"},
		"a queue that is no label":     {`{"name":"a"}`, `{"defaultQueue":"a/b"}`, `spec.defaultQueue: "a/b" is not the name of a queue`},
		"idle below nothing":           {`{"name":"a"}`, `{"idle":{"below":0}}`, "spec.idle.below: 0 is outside 1..100"},
		"idle below more than all":     {`{"name":"a"}`, `{"idle":{"below":101}}`, "spec.idle.below: 101 is outside 1..100"},
		"idle for less than a minute":  {`{"name":"a"}`, `{"idle":{"for":"59s"}}`, "spec.idle.for: 59s is outside 1m..720h"},
		"idle for more than a month":   {`{"name":"a"}`, `{"idle":{"for":"721h"}}`, "spec.idle.for: 721h is outside 1m..720h"},
		"idle for no duration":         {`{"name":"a"}`, `{"idle":{"for":"2 hours"}}`, `spec.idle.for: "2 hours" is not a duration`},
		"idle for a negative time":     {`{"name":"a"}`, `{"idle":{"for":"-2h"}}`, `spec.idle.for: "-2h" is not a positive duration`},
		"a fourth treatment of idle":   {`{"name":"a"}`, `{"idle":{"then":"kill"}}`, `spec.idle.then: "kill": want warn, suspend or end`},
		"a quota":                      {`{"name":"a"}`, `{"quota":{"cpu":1}}`, "quota"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, status := DecodeNamespace([]byte(`{"kind":"Namespace","metadata":` + c.metadata + `,"spec":` + c.spec + `}`))
			if status == nil || !strings.Contains(status.Message, c.want) {
				t.Errorf("got %v, want %q", status, c.want)
			}
		})
	}
}

// A document that a client got is taken back as it is, without the server's fields.
func TestTenantsAndNamespacesAreTakenWhole(t *testing.T) {
	tenant, status := DecodeTenant([]byte(wholeTenant))
	if status != nil {
		t.Fatal(status)
	}
	if d := cmp.Diff(wholeTenant, string(reencode(t, tenant))); d != "" {
		t.Errorf("the tenant (-sent +kept):\n%s", d)
	}
	served := strings.Replace(wholeNamespace, `"name":"vision-dev"`, `"name":"vision-dev","uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z"`, 1)
	namespace, status := DecodeNamespace([]byte(served))
	if status != nil {
		t.Fatal(status)
	}
	if m := namespace.Metadata; m.UID != "u" || m.ResourceVersion != "7" || m.CreationTimestamp != "" {
		t.Errorf("the metadata is %+v, want uid and resourceVersion alone: they are preconditions", m)
	}
	namespace.Metadata.UID, namespace.Metadata.ResourceVersion = "", ""
	if d := cmp.Diff(wholeNamespace, string(reencode(t, namespace))); d != "" {
		t.Errorf("the namespace (-sent +kept):\n%s", d)
	}
}

func TestTheRuleOfIdleJobsHasDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		idle   NamespaceIdle
		below  int32
		length time.Duration
		then   string
	}{
		"nothing is said":    {NamespaceIdle{}, 5, time.Hour, IdleWarn},
		"everything is said": {NamespaceIdle{Below: new(int32(100)), For: "90s", Then: IdleEnd}, 100, 90 * time.Second, IdleEnd},
	} {
		t.Run(name, func(t *testing.T) {
			if below, length, then := c.idle.Rule(); below != c.below || length != c.length || then != c.then {
				t.Errorf("below %d for %s, then %s", below, length, then)
			}
		})
	}
}

func FuzzDecodeTenant(f *testing.F) { fuzzDocument(f, DecodeTenant, wholeTenant) }

func FuzzDecodeNamespace(f *testing.F) { fuzzDocument(f, DecodeNamespace, wholeNamespace) }
