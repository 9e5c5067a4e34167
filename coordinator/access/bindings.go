package access

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/store"
)

// mayBind reports whether a caller sees and changes a binding.
func mayBind(by service.Principal, b *api.RoleBinding) *api.Status {
	return service.MayGrant(by, service.GrantOf(b.Spec.Role, b.Spec.Tenant, b.Spec.Namespaces))
}

// PutRoleBinding implements service.Credentials. Nobody gives a role that is not
// theirs to give, and nobody changes a binding that gives such a role.
func (k *Keeper) PutRoleBinding(ctx context.Context, b *api.RoleBinding, create bool) (*api.RoleBinding, error) {
	by := service.CallerOf(ctx)
	if status := cmp.Or(b.Validate(), mayBind(by.Principal, b)); status != nil {
		return nil, status
	}
	given, what := b.Metadata, "role binding "+b.Metadata.Name
	if own := b.Spec.Tenant + "."; !by.Everywhere(service.Admins) && !strings.HasPrefix(given.Name, own) {
		// So nobody learns which names the bindings of other tenants have.
		return nil, api.Errorf(http.StatusForbidden, "metadata.name: %q: want %sNAME, as each binding that a tenant-admin of %s makes", service.Clip(given.Name), own, b.Spec.Tenant)
	}
	for range attempts {
		before, kv, err := k.binding(ctx, given.Name)
		if err != nil {
			return nil, err
		}
		if status := k.judgePut(what, b.Spec.Tenant, before, given, create, by); status != nil {
			return nil, status
		}
		next := *b
		next.APIVersion, next.Kind = api.APIVersion, api.KindRoleBinding
		next.Metadata = api.ObjectMeta{Name: given.Name, Labels: given.Labels, Annotations: given.Annotations}
		document, err := json.Marshal(next)
		if err != nil {
			return nil, err
		}
		rec := record.Object{Name: given.Name, UID: "rolebinding-" + strings.TrimPrefix(newID(), idPrefix), Created: stamp(time.Now()), Document: document}
		if before != nil {
			rec.UID, rec.Created = before.Metadata.UID, before.Metadata.CreationTimestamp
		}
		kv.Key = record.RoleBindingKey(given.Name)
		revision, err := k.write(ctx, kv, record.Put(kv.Key, record.MustEncode(rec)))
		if err != nil {
			return nil, err
		}
		if revision != 0 {
			k.Logger.Info("role_binding_written", "name", given.Name, "role", b.Spec.Role, "tenant", b.Spec.Tenant, "by", by.Name, "request_id", by.RequestID)
			k.settle(ctx, revision)
			return shown.RoleBinding(record.KV{Key: kv.Key, Value: record.MustEncode(rec), ModRev: revision})
		}
	}
	return nil, busy(what)
}

// hasRoomForBinding refuses one more binding beyond the bounds: of all, and of those that
// give roles in a tenant ("" for the whole cluster, which has the first bound alone).
func (k *Keeper) hasRoomForBinding(tenant string) *api.Status {
	all := k.Table.now.Load().bindings
	if len(all) >= MaxBindings {
		return api.Errorf(http.StatusTooManyRequests, "%d role bindings are kept, which is the limit: delete some first", MaxBindings).Because(api.TooManyObjects)
	}
	own := 0
	for _, b := range all {
		if tenant != "" && b.Spec.Tenant == tenant {
			own++
		}
	}
	if own >= MaxTenantBindings {
		return api.Errorf(http.StatusTooManyRequests, "tenant %s has %d role bindings, which is the limit of a tenant: delete some first", tenant, MaxTenantBindings).Because(api.TooManyObjects)
	}
	return nil
}

// judgePut refuses a change that contradicts the binding that there is, nil for none.
func (k *Keeper) judgePut(what, tenant string, before *api.RoleBinding, given api.ObjectMeta, create bool, by service.Caller) *api.Status {
	switch {
	case before == nil && !create && (given.ResourceVersion != "" || given.UID != ""):
		return api.Errorf(http.StatusConflict, "%s does not exist any more, the update was made from resourceVersion %q and uid %q", what, service.Clip(given.ResourceVersion), service.Clip(given.UID))
	case before == nil:
		return k.hasRoomForBinding(tenant)
	case create, mayBind(by.Principal, before) != nil:
		// A binding of another tenant has a name that is taken, and nothing else is said of it.
		return api.Errorf(http.StatusConflict, "%s already exists", what).Because(api.AlreadyExists)
	}
	return api.Preconditions{UID: given.UID, ResourceVersion: given.ResourceVersion}.Check(what, before.Metadata)
}

// binding reads a binding; nil where there is none.
func (k *Keeper) binding(ctx context.Context, name string) (*api.RoleBinding, record.KV, error) {
	kv, found, _, err := k.Store.Get(ctx, record.RoleBindingKey(name))
	if err != nil {
		return nil, kv, unanswered(err)
	}
	if !found {
		return nil, record.KV{}, nil
	}
	b, err := shown.RoleBinding(kv)
	return b, kv, err
}

// visible is binding for a caller; 404 for each binding that the caller may not see.
func (k *Keeper) visible(ctx context.Context, name string) (*api.RoleBinding, record.KV, error) {
	b, kv, err := k.binding(ctx, name)
	if err == nil && (b == nil || mayBind(service.CallerOf(ctx).Principal, b) != nil) {
		if b != nil {
			service.Hidden(ctx)
		}
		err = api.Errorf(http.StatusNotFound, "role binding %s not found", service.Clip(name))
	}
	return b, kv, err
}

// GetRoleBinding implements service.Credentials.
func (k *Keeper) GetRoleBinding(ctx context.Context, name string) (*api.RoleBinding, error) {
	b, _, err := k.visible(ctx, name)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// ListRoleBindings implements service.Credentials.
func (k *Keeper) ListRoleBindings(ctx context.Context) (*api.RoleBindingList, error) {
	by := service.CallerOf(ctx)
	all, revision, err := k.Store.Range(ctx, record.RoleBindingsPrefix, store.RangeOptions{})
	if err != nil {
		return nil, unanswered(err)
	}
	list := &api.RoleBindingList{Kind: api.KindRoleBinding + "List", Items: []api.RoleBinding{}}
	list.Metadata.ResourceVersion = strconv.FormatInt(int64(revision), 10)
	for _, kv := range all {
		b, err := shown.RoleBinding(kv)
		if err != nil {
			return nil, err
		}
		if mayBind(by.Principal, b) == nil {
			list.Items = append(list.Items, *b)
		}
	}
	return list, nil
}

// DeleteRoleBinding implements service.Credentials.
func (k *Keeper) DeleteRoleBinding(ctx context.Context, name string, require api.Preconditions) (*api.RoleBinding, error) {
	by := service.CallerOf(ctx)
	for range attempts {
		b, kv, err := k.visible(ctx, name)
		if err != nil {
			return nil, err
		}
		if status := require.Check("role binding "+name, b.Metadata); status != nil {
			return nil, status
		}
		revision, err := k.write(ctx, kv, record.Delete(kv.Key))
		if err != nil {
			return nil, err
		}
		if revision != 0 {
			k.Logger.Info("role_binding_deleted", "name", name, "by", by.Name, "request_id", by.RequestID)
			k.settle(ctx, revision)
			return b, nil
		}
	}
	return nil, busy("role binding " + name)
}
