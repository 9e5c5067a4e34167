package shim

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Service is the command line of a shim that the init system starts for an agent that
// cannot change users itself. user is the user of the command, whatever the spec says:
// the spec is in the agent's hands. The shim runs as the agent's user, with the rights to
// change the user and to signal the command.
//
// Its standard input is the locked file of the folder, its standard output the pipe that is
// closed when it has begun, its standard error the file for its own errors.
func Service(program string, f Folder, user User) []string {
	return []string{program, Command, string(f), user.String()}
}

// String is the user as UID:GID:GROUP,GROUP.
func (u User) String() string {
	groups := make([]string, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = strconv.FormatUint(uint64(g), 10)
	}
	return fmt.Sprintf("%d:%d:%s", u.UID, u.GID, strings.Join(groups, ","))
}

// maxGroups bounds the groups of a user, as Linux does.
const maxGroups = 65536

// ParseUser reads what String prints.
func ParseUser(text string) (User, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return User{}, fmt.Errorf("user %.80q: want UID:GID:GROUP,GROUP", text)
	}
	var numbers []uint32
	list := parts[:2]
	if parts[2] != "" {
		list = append(list, strings.Split(parts[2], ",")...)
	}
	if len(list) > maxGroups {
		return User{}, fmt.Errorf("user %.80q: %d groups, want at most %d", text, len(list)-2, maxGroups)
	}
	for _, part := range list {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != part {
			return User{}, fmt.Errorf("user %.80q: %.80q is no number of a user or group", text, part)
		}
		numbers = append(numbers, uint32(n))
	}
	u := User{UID: numbers[0], GID: numbers[1]}
	if len(numbers) > 2 {
		u.Groups = numbers[2:]
	}
	return u, nil
}

// mainOfService is Main of a Service.
func mainOfService(f Folder, user string) int {
	u, err := ParseUser(user)
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster-shim:", err)
		return 1
	}
	h, err := takeOver()
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster-shim:", err)
		return 1
	}
	h.user = &u
	return mainWith(f, h)
}

// takeOver takes the files of a Service from where the init system has put them.
func takeOver() (h inheritance, err error) {
	for from, to := range map[int]*int{0: &h.lock, 1: &h.begun} {
		if *to, err = unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			return h, os.NewSyscallError("fcntl", err)
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return h, err
	}
	defer null.Close()
	for to := range 2 {
		if err := unix.Dup3(int(null.Fd()), to, 0); err != nil {
			return h, os.NewSyscallError("dup3", err)
		}
	}
	return h, nil
}
