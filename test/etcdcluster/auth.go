package etcdcluster

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// dial makes a client with all rights on some members, or on all.
func (c *Cluster) dial(members ...int) (*clientv3.Client, error) {
	config := clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop(), DialTimeout: attempt}
	if len(members) > 0 {
		config.Endpoints = nil
		for _, i := range members {
			config.Endpoints = append(config.Endpoints, c.Endpoint(i))
		}
	}
	if c.ca != nil {
		files := c.ca.admin(c.t)
		tls, err := transport.TLSInfo{TrustedCAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile}.ClientConfig()
		if err != nil {
			return nil, err
		}
		config.TLS = tls
	}
	if c.locked {
		config.Username, config.Password = RootUser, Password
	}
	return clientv3.New(config)
}

// enableAuth makes the users and turns authentication on. The role of
// MusterUser is the one that docs/store.md tells operators to make. Each step is
// repeated while the members change their leader; done is what etcd answers to a
// repetition of a step that it had done without an answer.
func (c *Cluster) enableAuth() {
	c.t.Helper()
	step := func(what string, done error, do func(context.Context, *clientv3.Client) error) {
		c.t.Helper()
		c.insist(what, nil, func(ctx context.Context, admin *clientv3.Client) error {
			if err := do(ctx, admin); err != nil && (done == nil || !errors.Is(err, done)) {
				return err
			}
			return nil
		})
	}
	user := func(name, role string) {
		c.t.Helper()
		step("add user "+name, rpctypes.ErrUserAlreadyExist, func(ctx context.Context, admin *clientv3.Client) error {
			_, err := admin.UserAdd(ctx, name, Password)
			return err
		})
		step("grant role "+role, nil, func(ctx context.Context, admin *clientv3.Client) error {
			_, err := admin.UserGrantRole(ctx, name, role)
			return err
		})
	}
	user(RootUser, "root")
	step("add role "+MusterUser, rpctypes.ErrRoleAlreadyExist, func(ctx context.Context, admin *clientv3.Client) error {
		_, err := admin.RoleAdd(ctx, MusterUser)
		return err
	})
	step("grant permission", nil, func(ctx context.Context, admin *clientv3.Client) error {
		_, err := admin.RoleGrantPermission(ctx, MusterUser, "/registry/", clientv3.GetPrefixRangeEnd("/registry/"), clientv3.PermissionType(clientv3.PermReadWrite))
		return err
	})
	user(MusterUser, MusterUser)
	step("enable authentication", rpctypes.ErrUserEmpty, func(ctx context.Context, admin *clientv3.Client) error {
		_, err := admin.AuthEnable(ctx)
		return err
	})
	c.locked = true
}
