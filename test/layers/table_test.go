package layers_test

// The layers of DESIGN.md section 2.
const (
	vocabulary = iota // L0: values; no I/O, clock, goroutine, log
	decision          // L1: pure functions and deterministic machines over L0
	adapter           // L2: one technology each
	owner             // L3: agent and coordinator, one event loop each
	edge              // L4: programs, the SDK
)

const module = "github.com/musterd/muster"

// row is one package's place. It may import every package of the layers above
// it (smaller numbers), within the walls below, and these of its own layer.
type row struct {
	layer      int
	neighbours []string
	testOnly   bool // a contract suite or a fake: production may not import it
}

// table is DESIGN.md section 2. Keys are paths below the module.
var table = map[string]row{
	"resource":            {layer: vocabulary, neighbours: []string{"resource/bitset"}},
	"resource/bitset":     {layer: vocabulary},
	"resource/registry":   {layer: vocabulary, neighbours: []string{"resource", "spelling"}},
	"spelling":            {layer: vocabulary},
	"level":               {layer: vocabulary},
	"numa":                {layer: vocabulary, neighbours: []string{"resource", "resource/bitset"}},
	"devices":             {layer: vocabulary, neighbours: []string{"resource", "resource/bitset"}},
	"grant":               {layer: vocabulary, neighbours: []string{"devices", "numa", "resource", "resource/bitset"}},
	"constraint":          {layer: vocabulary, neighbours: []string{"resource"}},
	"api":                 {layer: vocabulary, neighbours: []string{"resource", "resource/registry", "api/internal/strict"}},
	"api/internal/strict": {layer: vocabulary, neighbours: []string{"api/text"}},
	"api/text":            {layer: vocabulary},

	"fit":                                 {layer: decision},
	"agent/pressure":                      {layer: decision},
	"agent/ledger":                        {layer: decision, neighbours: []string{"fit"}},
	"agent/follow":                        {layer: decision, neighbours: []string{"agent/ledger"}},
	"coordinator/quota":                   {layer: decision},
	"coordinator/quota/quotajson":         {layer: decision, neighbours: []string{"coordinator/quota"}},
	"devices/health":                      {layer: decision},
	"coordinator/queue":                   {layer: decision, neighbours: []string{"coordinator/queue/ranked"}},
	"coordinator/queue/ranked":            {layer: decision},
	"coordinator/queue/rule":              {layer: decision, neighbours: []string{"coordinator/queue"}},
	"coordinator/admission":               {layer: decision, neighbours: []string{"coordinator/record"}},
	"coordinator/cluster":                 {layer: decision, neighbours: []string{"fit"}},
	"coordinator/history":                 {layer: decision},
	"coordinator/history/usage":           {layer: decision, neighbours: []string{"coordinator/history"}},
	"coordinator/history/usage/usagetest": {layer: decision, neighbours: []string{"coordinator/history", "coordinator/history/usage"}, testOnly: true},
	"coordinator/history/mem":             {layer: adapter, neighbours: []string{"coordinator/history"}, testOnly: true},
	"coordinator/history/spool":           {layer: adapter, neighbours: []string{"coordinator/history"}},
	"coordinator/history/projector":       {layer: owner, neighbours: []string{"coordinator/history/spool"}},
	"coordinator/history/narrate":         {layer: decision, neighbours: []string{"coordinator/admission", "coordinator/history", "coordinator/lead/edit", "coordinator/record", "coordinator/shown"}},
	"coordinator/idle":                    {layer: decision},
	"coordinator/life":                    {layer: decision},
	"coordinator/mix":                     {layer: decision},
	"coordinator/topology":                {layer: decision},
	"coordinator/place":                   {layer: decision, neighbours: []string{"coordinator/cluster", "coordinator/mix", "coordinator/topology", "fit"}},
	"coordinator/preempt":                 {layer: decision, neighbours: []string{"coordinator/cluster", "coordinator/place", "coordinator/topology", "fit"}},
	"coordinator/whatif": {layer: decision, neighbours: []string{
		"coordinator/cluster", "coordinator/place", "coordinator/preempt", "coordinator/queue", "coordinator/quota", "coordinator/sched",
	}},
	"coordinator/sched": {layer: decision, neighbours: []string{
		"coordinator/cluster", "coordinator/place", "coordinator/preempt", "coordinator/queue", "coordinator/quota", "coordinator/record",
	}},
	"coordinator/decisions":         {layer: decision, neighbours: []string{"coordinator/cluster", "coordinator/queue", "coordinator/queue/ranked", "coordinator/sched"}},
	"coordinator/decisions/logfile": {layer: adapter},
	"coordinator/txn":               {layer: decision},
	"coordinator/record":            {layer: decision},
	"coordinator/ceiling":           {layer: decision},
	"coordinator/count":             {layer: decision, neighbours: []string{"coordinator/record"}},
	"coordinator/events":            {layer: decision},
	"coordinator/objects": {layer: decision, neighbours: []string{
		"coordinator/admission", "coordinator/count", "coordinator/events", "coordinator/lead/charges", "coordinator/lead/edit", "coordinator/lead/form", "coordinator/queue", "coordinator/quota", "coordinator/record", "coordinator/shown",
	}},
	"coordinator/pace":       {layer: decision},
	"coordinator/rendezvous": {layer: decision},
	"coordinator/loss":       {layer: decision, neighbours: []string{"coordinator/record"}},
	"coordinator/lead": {layer: decision, neighbours: []string{
		"coordinator/admission", "coordinator/ceiling", "coordinator/cluster", "coordinator/count", "coordinator/decisions", "coordinator/idle", "coordinator/lead/breaker", "coordinator/lead/charges", "coordinator/lead/desk", "coordinator/lead/edit", "coordinator/lead/form", "coordinator/lead/hosts", "coordinator/lead/measured", "coordinator/lead/post", "coordinator/lead/refusal", "coordinator/lead/vacancy", "coordinator/lead/work", "coordinator/loss", "coordinator/life", "coordinator/mix", "coordinator/pace", "coordinator/place", "coordinator/preempt", "coordinator/queue", "coordinator/queue/rule", "coordinator/rendezvous",
		"coordinator/quota", "coordinator/quota/quotajson", "coordinator/record", "coordinator/sched", "coordinator/shown", "coordinator/topology", "coordinator/txn", "coordinator/whatif", "coordinator/why", "coordinator/window", "fit",
	}},
	"coordinator/capture":       {layer: decision, neighbours: []string{"coordinator/lead", "coordinator/lead/edit", "coordinator/mix", "coordinator/record", "coordinator/sched"}},
	"coordinator/window":        {layer: decision},
	"coordinator/why":           {layer: decision, neighbours: []string{"coordinator/place", "coordinator/quota", "coordinator/sched", "coordinator/whatif"}},
	"coordinator/lead/edit":     {layer: decision, neighbours: []string{"coordinator/queue/rule", "coordinator/record"}},
	"coordinator/lead/breaker":  {layer: decision},
	"coordinator/lead/measured": {layer: decision, neighbours: []string{"coordinator/record"}},
	"coordinator/lead/refusal":  {layer: decision, neighbours: []string{"coordinator/record"}},
	"coordinator/lead/vacancy":  {layer: decision, neighbours: []string{"coordinator/record"}},
	"coordinator/lead/form":     {layer: decision, neighbours: []string{"coordinator/place", "coordinator/quota", "coordinator/record", "coordinator/topology"}},
	"coordinator/lead/entries":  {layer: decision, neighbours: []string{"coordinator/record"}},
	"coordinator/lead/desk":     {layer: decision, neighbours: []string{"coordinator/lead/post", "coordinator/record"}},
	"coordinator/lead/hosts":    {layer: decision, neighbours: []string{"coordinator/record", "fit"}},
	"coordinator/lead/work": {layer: decision, neighbours: []string{
		"coordinator/count", "coordinator/idle", "coordinator/lead/breaker", "coordinator/lead/form", "coordinator/lead/measured", "coordinator/lead/post", "coordinator/lead/vacancy", "coordinator/life", "coordinator/place",
		"coordinator/queue", "coordinator/quota", "coordinator/record", "coordinator/sched", "coordinator/shown", "coordinator/txn", "coordinator/why",
	}},
	"coordinator/lead/post": {layer: decision, neighbours: []string{"coordinator/ceiling", "coordinator/lead/entries", "coordinator/record", "coordinator/txn"}},
	"coordinator/lead/charges": {layer: decision, neighbours: []string{
		"coordinator/lead/edit", "coordinator/quota", "coordinator/quota/quotajson", "coordinator/record", "coordinator/sched", "coordinator/shown", "coordinator/window",
	}},
	"coordinator/lead/batch": {layer: decision, neighbours: []string{"coordinator/record", "coordinator/txn"}},
	"coordinator/shown":      {layer: decision, neighbours: []string{"coordinator/admission", "coordinator/record", "fit"}},

	"proto/muster/v1":                 {layer: adapter},
	"proto/muster/api/v1":             {layer: adapter},
	"proto/scheduler/v1":              {layer: adapter, neighbours: []string{"proto/muster/v1"}},
	"wire":                            {layer: adapter, neighbours: []string{"proto/muster/v1", "wire/limits"}},
	"wire/limits":                     {layer: adapter, neighbours: []string{"proto/muster/v1", "proto/scheduler/v1"}},
	"pki":                             {layer: adapter},
	"pki/folder":                      {layer: adapter, neighbours: []string{"pki"}},
	"netlimit":                        {layer: adapter},
	"rpcauth":                         {layer: adapter, neighbours: []string{"netlimit", "pki"}},
	"devices/nvml":                    {layer: adapter},
	"devices/fake":                    {layer: adapter},
	"devices/fake/fakehost":           {layer: adapter, neighbours: []string{"devices/fake"}, testOnly: true},
	"numa/sysfs":                      {layer: adapter},
	"gossip":                          {layer: adapter, neighbours: []string{"gossip/digest", "gossip/ipc"}},
	"gossip/digest":                   {layer: adapter},
	"gossip/ipc":                      {layer: adapter},
	"agent/journal":                   {layer: adapter},
	"agent/handoff":                   {layer: adapter},
	"agent/assignment":                {layer: adapter, neighbours: []string{"agent/handoff"}},
	"agent/deviceplugin":              {layer: adapter},
	"agent/deviceplugin/kubelettest":  {layer: adapter, testOnly: true},
	"agent/shim":                      {layer: adapter},
	"agent/bounds":                    {layer: adapter},
	"agent/run":                       {layer: adapter, neighbours: []string{"agent/bounds", "agent/outputs", "agent/shim"}},
	"agent/cgroup":                    {layer: adapter, neighbours: []string{"agent/bounds", "agent/run", "agent/shim"}},
	"agent/attach":                    {layer: adapter, neighbours: []string{"agent/run", "agent/shim", "agent/users"}},
	"agent/script":                    {layer: adapter},
	"agent/cdi":                       {layer: adapter, neighbours: []string{"agent/shim"}},
	"agent/crun":                      {layer: adapter},
	"agent/outputs":                   {layer: decision},
	"agent/launch":                    {layer: adapter, neighbours: []string{"agent/bounds", "agent/run", "agent/shim", "agent/users"}},
	"agent/users":                     {layer: adapter, neighbours: []string{"agent/shim"}},
	"agent/usage":                     {layer: adapter},
	"agent/inspect":                   {layer: adapter, neighbours: []string{"numa/sysfs"}},
	"agent/rpc":                       {layer: adapter, neighbours: []string{"agent/usage", "pki", "proto/muster/v1", "proto/scheduler/v1", "rpcauth", "wire", "wire/limits"}},
	"coordinator/objects/objectstest": {layer: adapter, testOnly: true},
	"coordinator/store":               {layer: adapter},
	"coordinator/raise":               {layer: adapter, neighbours: []string{"coordinator/store"}},
	"coordinator/era":                 {layer: adapter, neighbours: []string{"coordinator/store"}},
	"coordinator/store/etcd":          {layer: adapter, neighbours: []string{"coordinator/store"}},
	"coordinator/store/mem":           {layer: adapter, neighbours: []string{"coordinator/store"}},
	"coordinator/store/condition":     {layer: adapter, neighbours: []string{"coordinator/store"}},
	"coordinator/store/storetest":     {layer: adapter, neighbours: []string{"coordinator/store"}, testOnly: true},
	"coordinator/agents":              {layer: adapter, neighbours: []string{"proto/muster/v1", "wire", "wire/limits"}},
	"coordinator/quota/replay":        {layer: adapter},
	"coordinator/simulate":            {layer: adapter},
	"coordinator/monitor":             {layer: adapter},
	"yamldoc":                         {layer: adapter},
	"websocket":                       {layer: adapter},
	"coordinator/history/warehouse":   {layer: adapter},
	"coordinator/history/warehouse/warehousetest": {layer: adapter, neighbours: []string{"coordinator/history/mem", "coordinator/history/warehouse"}, testOnly: true},
	"coordinator/history/redis":                   {layer: adapter},
	"coordinator/history/sampler":                 {layer: adapter},
	"coordinator/history/ask":                     {layer: adapter, neighbours: []string{"coordinator/history/warehouse"}},
	"coordinator/history/answer":                  {layer: adapter, neighbours: []string{"coordinator/history/ask", "coordinator/history/warehouse", "coordinator/service"}},
	"coordinator/history/slots":                   {layer: adapter, neighbours: []string{"coordinator/history/warehouse"}},
	"coordinator/history/tally":                   {layer: adapter, neighbours: []string{"coordinator/history/warehouse"}},
	"coordinator/history/sound":                   {layer: adapter, neighbours: []string{"coordinator/history/warehouse"}},
	"coordinator/history/usage/pricefile":         {layer: adapter, neighbours: []string{"yamldoc"}},
	"coordinator/service":                         {layer: adapter},
	"coordinator/audit":                           {layer: adapter, neighbours: []string{"coordinator/service", "coordinator/store"}},
	"coordinator/oidc":                            {layer: adapter, neighbours: []string{"coordinator/service"}},
	"coordinator/access":                          {layer: adapter, neighbours: []string{"coordinator/oidc", "coordinator/service", "coordinator/store", "pki"}},
	"coordinator/gate":                            {layer: adapter, neighbours: []string{"coordinator/service"}},
	"coordinator/rest":                            {layer: adapter, neighbours: []string{"coordinator/gate", "coordinator/service", "netlimit", "websocket", "yamldoc"}},
	"coordinator/rest/restdoc":                    {layer: adapter, neighbours: []string{"coordinator/rest", "coordinator/service"}, testOnly: true},
	"coordinator/grpcapi":                         {layer: adapter, neighbours: []string{"coordinator/gate", "coordinator/service", "proto/muster/api/v1", "proto/muster/v1", "rpcauth", "wire"}},
	"coordinator/enroll":                          {layer: adapter, neighbours: []string{"coordinator/store", "pki", "pki/folder", "proto/muster/v1", "rpcauth"}},
	"coordinator/rpc":                             {layer: adapter, neighbours: []string{"coordinator/era", "coordinator/store", "proto/muster/v1", "proto/scheduler/v1", "wire", "wire/limits"}},

	"agent":              {layer: owner},
	"coordinator":        {layer: owner, neighbours: []string{"coordinator/follow"}},
	"coordinator/follow": {layer: owner},
	"coordinator/daemon": {layer: owner, neighbours: []string{"coordinator", "coordinator/history/projector"}},

	"sdk":                            {layer: edge},
	"sdk/allocator":                  {layer: edge, neighbours: []string{"sdk"}},
	"sdk/allocator/example":          {layer: edge, neighbours: []string{"sdk/allocator"}},
	"cmd/buildinfo":                  {layer: edge},
	"cmd/configfile":                 {layer: edge},
	"cmd/manual":                     {layer: edge},
	"cmd/reference":                  {layer: edge},
	"cmd/reference/series":           {layer: edge},
	"cmd/muster-agent":               {layer: edge, neighbours: []string{"cmd/buildinfo", "cmd/configfile", "cmd/manual"}},
	"cmd/muster-launch":              {layer: edge, neighbours: []string{"cmd/buildinfo"}},
	"cmd/muster-shim":                {layer: edge},
	"cmd/muster-coordinator":         {layer: edge, neighbours: []string{"cmd/buildinfo", "cmd/configfile", "cmd/manual"}},
	"cmd/muster":                     {layer: edge, neighbours: []string{"cmd/buildinfo", "cmd/muster/cli", "cmd/muster/dev", "cmd/muster/internal/clicontext", "sdk"}},
	"cmd/muster/cli":                 {layer: edge, neighbours: []string{"cmd/buildinfo", "cmd/manual", "cmd/reference", "cmd/muster/alone", "cmd/muster/doctor", "cmd/muster/internal/clicontext", "cmd/muster/internal/login", "sdk"}},
	"cmd/muster/alone":               {layer: edge},
	"cmd/muster/doctor":              {layer: edge, neighbours: []string{"sdk"}},
	"cmd/muster/dev":                 {layer: edge, neighbours: []string{"cmd/buildinfo", "cmd/configfile", "cmd/muster/internal/clicontext", "sdk"}},
	"cmd/muster/internal/login":      {layer: edge},
	"cmd/muster/internal/clicontext": {layer: edge, neighbours: []string{"cmd/configfile"}},
}

// testTree holds programs and packages that serve tests alone. They have no
// rows and may import anything; nothing outside the tree may import them.
const testTree = "test/"

// undocumented are packages that decide by vocabulary of their own: none imports
// api, the documents that clients read and write. The leader translates.
var undocumented = []string{
	"fit", "agent/ledger", "coordinator/cluster", "coordinator/decisions", "coordinator/idle", "coordinator/life", "coordinator/place", "coordinator/preempt", "coordinator/queue", "coordinator/quota",
	"coordinator/record", "coordinator/txn", "coordinator/whatif",
}

// walls are trees that never import each other: they meet in L0 and fit, and
// through proto in L2.
var walls = [][2]string{{"agent", "coordinator"}}

// generated types stop at the adapters; what is listed here registers their
// services and reads no message.
var (
	generatedTree      = "proto"
	generatedImporters = []string{"coordinator/daemon"}
)

// pure lists the standard packages that L0 and L1 may use: nothing that
// reaches the world, keeps time, draws lots, logs or synchronizes.
var pure = map[string]bool{
	"bytes": true, "cmp": true, "container/heap": true, "encoding/base64": true, "encoding/binary": true, "encoding/hex": true, "encoding/json": true, "errors": true,
	"fmt": true, "hash/crc32": true, "hash/fnv": true, "iter": true, "maps": true, "math": true, "math/big": true, "math/bits": true,
	"path": true, "reflect": true, "slices": true, "sort": true, "strconv": true, "strings": true, "unicode": true, "unicode/utf8": true,
	"time":                     true, // its types; impureCalls says which functions not
	"github.com/tidwall/btree": true, // trees with cheap copies
}

// pureExceptions are single imports beyond pure, with the prefix of the names
// that may be used from them.
var pureExceptions = map[string]map[string]string{
	"api/internal/strict":   {"unsafe": "String"},                       // a view of given bytes that nobody changes
	"api":                   {"net/http": "Status"},                     // status codes by their names
	"coordinator/lead/post": {"math/rand/v2": "NewChaCha8"},             // of a given seed
	"coordinator/record":    {"crypto/sha256": "Sum256"},                // of given bytes
	"coordinator/objects":   {"sync": "Once", "sync/atomic": "Pointer"}, // a value that the first reader computes, of a value that one reader has at a time
}

// impureCalls are the names of pure packages that act on the world.
var impureCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "LoadLocation", "Local"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// exclusive names the only importers of a technology, by import path prefix.
var exclusive = map[string][]string{
	"github.com/NVIDIA/go-nvml":         {"devices/nvml"},
	"go.etcd.io":                        {"coordinator/store/etcd"},
	"go.uber.org/zap":                   {"coordinator/store/etcd"},
	"github.com/shirou/gopsutil":        {"agent/usage"},
	"github.com/hashicorp":              {"gossip", "gossip/ipc", "cmd/muster/doctor"}, // there serf's RPC client alone
	"github.com/spf13/cobra":            {"cmd/buildinfo", "cmd/manual", "cmd/muster", "cmd/muster/cli", "cmd/muster/dev", "cmd/muster-agent", "cmd/muster-coordinator"},
	"k8s.io/client-go":                  {"cmd/muster/cli"}, // its jsonpath alone, which imports the standard library alone
	"github.com/coreos/go-systemd":      {"agent/launch", "cmd/muster-agent", "cmd/muster-coordinator", "cmd/muster-launch"},
	"github.com/godbus/dbus":            {"agent/launch"},
	"github.com/cilium/ebpf":            {"agent/cgroup"},
	"github.com/jackc/pgx":              {"coordinator/history/warehouse"},
	"github.com/pressly/goose":          {"coordinator/history/warehouse"},
	"modernc.org/sqlite":                {"coordinator/history/warehouse"},
	"github.com/redis/go-redis":         {"coordinator/history/redis"},
	"google.golang.org/protobuf":        {"proto/muster/v1", "proto/muster/api/v1", "proto/scheduler/v1", "wire", "wire/limits", "agent/rpc", "coordinator/agents", "coordinator/rpc", "coordinator/grpcapi"},
	"github.com/google/go-cmp":          {"coordinator/history/warehouse/warehousetest", "coordinator/store/storetest"},
	"pgregory.net/rapid":                {"coordinator/store/storetest"},
	"github.com/cockroachdb/datadriven": {},
	"go.uber.org/goleak":                {},
}

// environment lists the functions by which a program reads its environment;
// cmd/ alone may call them.
var environment = map[string][]string{
	"os":      {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "UserHomeDir", "UserConfigDir", "UserCacheDir"},
	"syscall": {"Getenv", "Environ"},
}

// serfCommands is serf's command line, which brings sprig, mergo, speakeasy, mdns
// and syslog with it; gossip/ipc stands in for it.
const serfCommands = "github.com/hashicorp/serf/cmd"

// withoutCgo are the programs that must build without cgo: tenants run them
// anywhere, and C code of the driver has no place beside the store. cmd/muster-agent
// loads the driver's library.
var withoutCgo = []string{"cmd/muster", "cmd/muster-coordinator", "cmd/muster-launch", "cmd/muster-shim"}

// absent names what a program must not be linked with, by import path prefix.
var absent = map[string][]string{
	"cmd/muster-agent": {
		"go.etcd.io", module + "/coordinator", "github.com/jackc/pgx", "github.com/lib/pq", "modernc.org/sqlite",
		"github.com/mattn/go-sqlite3", "github.com/pressly/goose", "github.com/google/go-cmp", serfCommands,
	},
	// The tests' go-cmp comes to the coordinator, and through muster dev to muster, with
	// etcd's server (storage/backend), which is embedded there.
	"cmd/muster-coordinator": {"github.com/NVIDIA/go-nvml", module + "/agent", module + "/devices/nvml", "github.com/shirou/gopsutil", serfCommands},
	"cmd/muster":             {serfCommands},
	"sdk":                    {"google.golang.org/grpc", "go.etcd.io", "github.com", "k8s.io", "sigs.k8s.io"},
}
