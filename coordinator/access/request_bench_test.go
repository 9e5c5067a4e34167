package access_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/provider"
)

// crowd is 10,000 people with a proof each, and what each of them asks for.
const crowd, tenants = 10_000, 1_000

// bind notes a role binding of editors of a tenant.
func (o *office) bind(name, tenant string, subject api.Subject) {
	o.t.Helper()
	text, err := json.Marshal(binding(name, "editor", tenant, subject))
	if err != nil {
		o.t.Fatal(err)
	}
	key := record.RoleBindingKey(name)
	o.table.Note(key, &record.KV{Key: key, ModRev: 1, Value: record.MustEncode(record.Object{UID: "u", Name: name, Document: text})})
}

func tenantOf(i int) string { return fmt.Sprintf("tenant-%d", i%tenants) }

// requests measures the whole decision on a request, who the caller is and whether the
// caller may create a job in a tenant's namespace, for callers in turn.
func (o *office) requests(b *testing.B, texts []string) {
	b.Helper()
	may := service.Access{}
	namespaces := make([]string, len(texts))
	ask := func(i int) {
		p, err := o.door.Authenticate(b.Context(), texts[i])
		if err != nil {
			b.Fatal(err)
		}
		if status := may.Authorize(p, service.VerbCreate, service.KindJobs, namespaces[i], ""); status != nil {
			b.Fatal(status)
		}
	}
	for i := range texts {
		namespaces[i] = tenantOf(i)
		ask(i) // the first request of a person has the signature verified
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		ask(i % len(texts))
	}
}

// BenchmarkRequestWithAToken has 10,000 access tokens of 1,000 tenants.
func BenchmarkRequestWithAToken(b *testing.B) {
	for _, c := range []struct {
		name string
		role string
		bind func(*office, int)
	}{
		{"a role of its own", "editor", nil},
		{"a role by a binding of the user", "", func(o *office, i int) {
			if i < access.MaxBindings {
				o.bind(tenantOf(i)+fmt.Sprintf(".b-%d", i), tenantOf(i), user(fmt.Sprintf("user-%d", i)))
			}
		}},
		{"one user with a role in each of the tenants", "", func(o *office, i int) {
			if i < tenants {
				o.bind(tenantOf(i)+".one", tenantOf(i), user("one"))
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := newOffice(b)
			var texts []string
			for i := range crowd {
				name, tenant := fmt.Sprintf("user-%d", i), ""
				if c.role != "" {
					tenant = tenantOf(i)
				}
				if c.name[:3] == "one" {
					name = "one"
				}
				text, rec := access.NewTokenForTest(name, c.role, tenant)
				kv := record.KV{Key: record.AccessTokenKey(rec.ID), Value: record.MustEncode(rec), ModRev: 1}
				o.table.Note(kv.Key, &kv)
				if c.bind != nil {
					c.bind(o, i)
				}
				if c.role != "" || c.name[:3] == "one" || i < access.MaxBindings {
					texts = append(texts, text)
				}
			}
			o.table.Publish()
			o.requests(b, texts)
		})
	}
}

// BenchmarkRequestOfAPerson has 10,000 ID tokens of 10,000 people, each verified before.
func BenchmarkRequestOfAPerson(b *testing.B) {
	idp := provider.New(b)
	idp.Rotate("elliptic", jose.ES256)
	for _, c := range []struct {
		name   string
		groups func(i int) []string
		bind   func(*office)
	}{
		{"one group, with a role in one of the tenants", func(i int) []string { return []string{tenantOf(i)} }, func(o *office) {
			for i := range tenants {
				o.bind(tenantOf(i)+".group", tenantOf(i), api.Subject{Kind: api.SubjectGroup, Name: "oidc:" + tenantOf(i)})
			}
		}},
		{"three groups, one with a role in each of the tenants", func(i int) []string { return []string{"all", "gpu", tenantOf(i)} }, func(o *office) {
			for i := range tenants {
				o.bind(tenantOf(i)+".all", tenantOf(i), api.Subject{Kind: api.SubjectGroup, Name: "oidc:all"})
				o.bind(tenantOf(i)+".group", tenantOf(i), api.Subject{Kind: api.SubjectGroup, Name: "oidc:" + tenantOf(i)})
			}
		}},
		{"a binding of the user", func(int) []string { return nil }, func(o *office) {
			for i := range access.MaxBindings {
				b := binding(fmt.Sprintf("%s.b-%d", tenantOf(i), i), "editor", tenantOf(i), user(fmt.Sprintf("oidc:u-%d", i)), user(fmt.Sprintf("oidc:u-%d", i+access.MaxBindings)))
				text, err := json.Marshal(b)
				if err != nil {
					o.t.Fatal(err)
				}
				key := record.RoleBindingKey(b.Metadata.Name)
				o.table.Note(key, &record.KV{Key: key, ModRev: 1, Value: record.MustEncode(record.Object{UID: "u", Name: b.Metadata.Name, Document: text})})
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := newOffice(b)
			verifier, err := oidc.New(oidc.Config{Issuer: idp.Issuer(), ClientID: provider.ClientID, CAFile: idp.CAFile(), GroupsClaim: "groups"}, nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			o.door.Persons = verifier
			c.bind(o)
			o.table.Publish()
			texts := make([]string, crowd)
			for i := range texts {
				texts[i] = idp.Token(map[string]any{"sub": fmt.Sprintf("u-%d", i), "groups": c.groups(i)})
			}
			o.requests(b, texts)
		})
	}
}
