package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/yamldoc"
)

// The checks of a host's own configuration, in their order.
const (
	checkFile   = "file"
	checkTokens = "tokens"
	checkPorts  = "ports"
	checkData   = "data folder"
	checkPeers  = "peers"
	checkName   = "name"
)

var hostChecks = []string{checkFile, checkTokens, checkPorts, checkData, checkPeers, checkName}

const (
	// maxConfig bounds a configuration file.
	maxConfig = 1 << 20
	// leastRoom is the free space of a data folder below which there is a warning.
	leastRoom = 1 << 30
)

// hostLook is a look at one configuration file.
type hostLook struct {
	options  Options
	path     string
	fields   map[string]any
	findings []Finding
	skipped  []Skipped
}

func (h *hostLook) find(severity Severity, check, subject, remedy, format string, args ...any) {
	h.findings = append(h.findings, Finding{severity, check, subject, fmt.Sprintf(format, args...), remedy})
}

// LookAtHost looks at the configuration file of an agent or a coordinator on this
// host, and at the files, ports and peers that it names. nodes are those of the
// cluster, nil where it was not asked. The error says that the file cannot be
// read at all.
func LookAtHost(ctx context.Context, path string, nodes []api.Node, o Options) (Report, error) {
	h := &hostLook{options: o, path: path}
	info, err := os.Stat(path)
	if err != nil {
		return Report{}, err
	}
	if info.Size() > maxConfig {
		return Report{}, fmt.Errorf("%s: %d bytes are more than %d", path, info.Size(), maxConfig)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Report{}, err
	}
	if err := yamldoc.Check(text); err != nil {
		h.find(Error, checkFile, path, "correct the file; muster-agent and muster-coordinator refuse it", "%v", err)
		return newReport(path, hostChecks[:1], nil, h.findings), nil
	}
	if err := yaml.UnmarshalStrict(text, &h.fields); err != nil {
		h.find(Error, checkFile, path, "correct the file; muster-agent and muster-coordinator refuse it", "it is no YAML: %v", err)
		return newReport(path, hostChecks[:1], nil, h.findings), nil
	}
	if info.Mode().Perm()&0o022 != 0 {
		h.find(Error, checkFile, path, "chmod go-w "+path, "its mode is %#o: others than its owner can change it", info.Mode().Perm())
	}
	h.tokens()
	h.ports()
	h.dataFolder()
	h.peers(ctx)
	h.name(nodes)
	return newReport(path, hostChecks, h.skipped, h.findings), nil
}

// field is the text at a path of keys, "" where there is none.
func (h *hostLook) field(keys ...string) string {
	var at any = h.fields
	for _, key := range keys {
		m, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = m[key]
	}
	text, _ := at.(string)
	return text
}

// list is the list of texts at a path of keys.
func (h *hostLook) list(keys ...string) (texts []string) {
	var at any = h.fields
	for _, key := range keys {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[key]
	}
	values, _ := at.([]any)
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// tokens checks the token files: that they can be read, by their owner alone, and
// that no two hold the same token.
func (h *hostLook) tokens() {
	seen := map[string]string{} // field by token
	for _, keys := range [][]string{{"tokenFile"}, {"adminTokenFile"}, {"bootstrapTokenFile"}, {"gossip", "serfRPCTokenFile"}} {
		name, file := strings.Join(keys, "."), h.field(keys...)
		if file == "" {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			h.find(Error, checkTokens, name, "make the file, as docs/install.md says", "%v", err)
			continue
		}
		if info.Mode().Perm()&0o077 != 0 {
			h.find(Error, checkTokens, name, "chmod 0600 "+file, "the mode of %s is %#o: others than its owner can read the token", file, info.Mode().Perm())
		}
		text, err := os.ReadFile(file)
		if err != nil {
			h.skipped = append(h.skipped, Skipped{checkTokens, err.Error()})
			continue
		}
		token := string(bytes.TrimSpace(text))
		switch other, twice := seen[token]; {
		case token == "":
			h.find(Error, checkTokens, name, "write a token into "+file+": head -c 32 /dev/urandom | base64", "%s is empty", file)
		case twice:
			h.find(Error, checkTokens, name, "give each its own token: head -c 32 /dev/urandom | base64 > "+file, "%s has the same token as %s: whoever may use the one may use the other", name, other)
		}
		seen[token] = name
	}
}

// listeners are the keys of addresses that an agent or a coordinator binds.
var listeners = [][]string{
	{"listen"}, {"metricsListen"}, {"restListen"}, {"grpcListen"}, {"enrollListen"}, {"gossip", "serfBind"}, {"gossip", "serfRPC"}, {"gossip", "capacityBind"},
}

// ports tries each address that the program binds. While the program runs all of
// them are taken, which is as it should be.
func (h *hostLook) ports() {
	named, taken := map[string]string{}, map[string]string{}
	free := 0
	for _, keys := range listeners {
		name, address := strings.Join(keys, "."), h.field(keys...)
		if address == "" {
			continue
		}
		if other, twice := named[address]; twice {
			h.find(Error, checkPorts, name, "give each its own port", "%s is %s, as %s is", name, address, other)
			continue
		}
		named[address] = name
		l, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			free++
			_ = l.Close() // no client has dialled it
		case errors.Is(err, syscall.EADDRINUSE):
			taken[name] = address
		default:
			h.find(Error, checkPorts, name, "name an address of this host: ip address", "%s cannot be bound: %v", address, err)
		}
	}
	if free == 0 {
		return // the program runs
	}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		_, port, _ := net.SplitHostPort(taken[name])
		h.find(Error, checkPorts, name, "ss -ltnp sport = :"+port+"; then stop that program, or choose another port", "%s is in use by another program", taken[name])
	}
}

// dataFolder checks that the data folder is there, can be written and has room.
func (h *hostLook) dataFolder() {
	dir := h.field("dataDir")
	if dir == "" {
		h.skipped = append(h.skipped, Skipped{checkData, "dataDir is not set in the file; the program's default counts"})
		return
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.find(Note, checkData, dir, "", "it does not exist yet; the program makes it at its first start")
		dir = filepath.Dir(dir)
	case err != nil:
		h.find(Error, checkData, dir, "ls -ld "+dir, "%v", err)
		return
	case !info.IsDir():
		h.find(Error, checkData, dir, "move the file away, or set dataDir", "it is no folder")
		return
	case info.Mode().Perm()&0o002 != 0:
		h.find(Error, checkData, dir, "chmod o-w "+dir, "its mode is %#o: everybody can change what the program remembers", info.Mode().Perm())
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		h.find(Error, checkData, dir, "run this as the program's user; chown "+dir+" for that user", "it cannot be written: %v", err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err == nil {
		room, all := int64(disk.Bavail)*disk.Bsize, int64(disk.Blocks)*disk.Bsize
		if room < leastRoom {
			h.find(Warning, checkData, dir, "df -h "+dir+"; make room", "%d MiB of %d MiB are free", room>>20, all>>20)
		}
	}
}

// peers dials the addresses that the program will dial.
func (h *hostLook) peers(ctx context.Context) {
	dialer := net.Dialer{Timeout: h.options.patience()}
	for _, keys := range [][]string{{"coordinators"}, {"gossip", "join"}, {"gossip", "joinCapacity"}, {"etcd", "endpoints"}, {"etcdEndpoints"}} {
		for i, peer := range h.list(keys...) {
			if i == maxEndpoints {
				break
			}
			address := peer
			if u, err := url.Parse(peer); err == nil && u.Host != "" {
				address = u.Host
			}
			done := h.options.progress("waiting for " + address)
			conn, err := dialer.DialContext(ctx, "tcp", address)
			done()
			if err == nil {
				_ = conn.Close() // nothing was written
				continue
			}
			h.find(Error, checkPeers, fmt.Sprintf("%s[%d]", strings.Join(keys, "."), i), "on that host: is the program started, and the port open? nc -vz "+strings.Replace(address, ":", " ", 1),
				"%s does not answer: %v", peer, errors.Unwrap(err))
		}
	}
}

// name compares the node's id with the nodes of the cluster.
func (h *hostLook) name(nodes []api.Node) {
	host, err := os.Hostname()
	id := h.field("nodeID")
	switch {
	case h.field("restListen") != "" || h.field("grpcListen") != "":
		return // a coordinator
	case nodes == nil:
		h.skipped = append(h.skipped, Skipped{checkName, "the cluster was not asked for its nodes"})
		return
	case id == "" && err == nil:
		id = strings.ToLower(host)
	}
	for _, n := range nodes {
		if n.Metadata.Name != id {
			continue
		}
		for _, a := range n.Status.Addresses {
			if a.Type == "Hostname" && err == nil && !strings.EqualFold(a.Address, host) {
				h.find(Error, checkName, id, "set another nodeID in "+h.path+"; or, if the host was renamed: muster delete node "+id,
					"a node of this name is registered by the host %s, and this host is %s", a.Address, host)
			}
		}
	}
}

// JudgeHost is LookAtHost with the nodes of a cluster that was looked at.
func (f Facts) JudgeHost(ctx context.Context, path string, o Options) (Report, error) {
	var nodes []api.Node
	if f.blind[checkNodes] == "" {
		nodes = append([]api.Node{}, f.nodes...)
	}
	return LookAtHost(ctx, path, nodes, o)
}
