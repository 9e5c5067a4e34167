package etcdcluster

import (
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
// MusterUser is the one that docs/store.md tells operators to make.
func (c *Cluster) enableAuth() {
	c.t.Helper()
	admin := c.Admin()
	ctx, cancel := within()
	defer cancel()
	step := func(what string, err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := admin.UserAdd(ctx, RootUser, Password)
	step("add user root", err)
	_, err = admin.UserGrantRole(ctx, RootUser, "root")
	step("grant role root", err)
	_, err = admin.RoleAdd(ctx, MusterUser)
	step("add role", err)
	_, err = admin.RoleGrantPermission(ctx, MusterUser, "/registry/", clientv3.GetPrefixRangeEnd("/registry/"), clientv3.PermissionType(clientv3.PermReadWrite))
	step("grant permission", err)
	_, err = admin.UserAdd(ctx, MusterUser, Password)
	step("add user", err)
	_, err = admin.UserGrantRole(ctx, MusterUser, MusterUser)
	step("grant role", err)
	_, err = admin.AuthEnable(ctx)
	step("enable authentication", err)
	c.locked = true
}
