package objects

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// remakeCredential makes an access token or a role binding from its key. A record that
// cannot be read gives no right (package access) and is not shown: it must not keep
// the work of the cluster from being shown.
func (c *Cache) remakeCredential(key string, kvs map[string]record.KV) {
	kv, found := kvs[key]
	if id, err := record.ParseAccessTokenKey(key); err == nil {
		c.stale[Name{AccessTokens, "", id}] = true
		delete(c.accessTokens, id)
		if rec, err := record.Decode[record.AccessToken](key, kv.Value); found && err == nil {
			c.accessTokens[id] = &accessTokenEntry{rec, kv.ModRev}
		}
		return
	}
	name, err := record.ParseRoleBindingKey(key)
	if err != nil {
		return
	}
	c.stale[Name{RoleBindings, "", name}] = true
	delete(c.roleBindings, name)
	if b, err := shown.RoleBinding(kv); found && err == nil {
		c.roleBindings[name] = shown.Versioned[api.RoleBinding]{Object: *b, Revision: kv.ModRev}
	}
}

// accessTokenEntry is an access token. Its figures are the parts that change as time
// passes: the secrets that are valid, and the end of the token.
type accessTokenEntry struct {
	record   record.AccessToken
	revision resource.Revision
}

func (e *accessTokenEntry) base() any { return shown.AccessToken(&e.record, e.revision, time.Time{}) }

func (e *accessTokenEntry) figures(object any, v *View) {
	object.(*api.AccessToken).Status = shown.AccessToken(&e.record, e.revision, v.now).Status
}

func (e *accessTokenEntry) size() int { return 1 << 10 }

// roleBindingEntry is a role binding.
type roleBindingEntry struct {
	shown.Versioned[api.RoleBinding]
}

func (e *roleBindingEntry) base() any          { return e.Copy() }
func (e *roleBindingEntry) figures(any, *View) {}
func (e *roleBindingEntry) size() int          { return 2<<10 + 128*len(e.Object.Spec.Subjects) }
