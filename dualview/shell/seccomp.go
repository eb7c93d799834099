package shell

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, little-endian.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
)

const (
	retAllow = 0x7fff0000
	retErrno = 0x00050000
	retKill  = 0x80000000
)

// denied are system calls that no command of an agent needs and that reach
// other processes, the kernel or other namespaces.
var denied = [...]uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_PERSONALITY,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETTIMEOFDAY,
	unix.SYS_PIDFD_GETFD, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// families are the socket families that a network namespace confines.
var families = [...]uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// filter returns the program for the kernel's seccomp filter.
func filter() ([]byte, error) {
	var arch uint32
	switch runtime.GOARCH {
	case "amd64":
		arch = unix.AUDIT_ARCH_X86_64
	case "arm64":
		arch = unix.AUDIT_ARCH_AARCH64
	default:
		return nil, errors.New("there is no filter of system calls for this processor")
	}
	load := func(off uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: off, Size: 4} }
	errno := func(e unix.Errno) bpf.Instruction { return bpf.RetConstant{Val: retErrno | uint32(e)} }
	prog := []bpf.Instruction{
		load(dataArch),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill}, // another architecture's numbers mean other calls
		load(dataNumber),
	}
	if runtime.GOARCH == "amd64" {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: 0x40000000, SkipFalse: 1}, bpf.RetConstant{Val: retKill}) // x32
	}
	for _, nr := range denied {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 1}, errno(unix.EPERM))
	}
	// clone3 takes its flags where no filter can see them; without it programs
	// use clone.
	prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE3, SkipFalse: 1}, errno(unix.ENOSYS))
	const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	prog = append(prog,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE, SkipFalse: 4},
		load(dataArg0),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newNamespaces, SkipFalse: 1},
		errno(unix.EPERM),
		bpf.RetConstant{Val: retAllow},
	)
	check := []bpf.Instruction{load(dataArg0)}
	for _, f := range families {
		check = append(check, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipFalse: 1}, bpf.RetConstant{Val: retAllow})
	}
	check = append(check, errno(unix.EAFNOSUPPORT))
	prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipFalse: uint8(len(check))})
	prog = append(prog, check...)
	prog = append(prog, bpf.RetConstant{Val: retAllow})
	raw, err := bpf.Assemble(prog)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, ins := range raw {
		binary.Write(&out, binary.LittleEndian, ins) // a buffer takes everything
	}
	return out.Bytes(), nil
}
