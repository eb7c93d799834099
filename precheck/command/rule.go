package command

// Rule names a kind of effect. It is part of the log's vocabulary: stable.
type Rule string

// The effects.
const (
	DeleteBroad     Rule = "delete-broad"     // deletion outside the workspace, of it, or of its history
	DeleteUnknown   Rule = "delete-unknown"   // recursive deletion of what only the shell knows
	DeleteWorkspace Rule = "delete-workspace" // recursive deletion of sources in the workspace
	GitForcePush    Rule = "git-force-push"   // overwrites or deletes remote history
	GitDiscard      Rule = "git-discard"      // throws local work away
	DiskWrite       Rule = "disk-write"       // writes to a device or makes a file system
	FileShred       Rule = "file-shred"       // overwrites files so that nothing recovers them
	RemoteCode      Rule = "remote-code"      // runs what was just downloaded
	DecodedCode     Rule = "decoded-code"     // runs what was just decoded
	RemoteShell     Rule = "remote-shell"     // hands a shell to the network
	DatabaseDrop    Rule = "database-drop"    // drops, truncates or empties a table or database
	ClusterDelete   Rule = "cluster-delete"   // deletes from a cluster
	InfraDestroy    Rule = "infra-destroy"    // destroys declared infrastructure
	CloudDelete     Rule = "cloud-delete"     // deletes a cloud's resources
	ContainerPrune  Rule = "container-prune"  // deletes images and volumes
	PermissionBroad Rule = "permission-broad" // opens a system's or home's files to everybody
	AccessGrant     Rule = "access-grant"     // gives somebody rights
	AccessRevoke    Rule = "access-revoke"    // takes somebody's rights
	ServiceDisable  Rule = "service-disable"  // turns a service, a schedule or a protection off
	Persistence     Rule = "persistence"      // makes something run later by itself
	PublishDelete   Rule = "publish-delete"   // withdraws a repository, a package or a site
	Payment         Rule = "payment-command"  // moves money or ends a subscription
	ProcessKill     Rule = "process-kill"     // ends processes or the machine
	ForkBomb        Rule = "fork-bomb"
	CodeDelete      Rule = "code-delete"      // a program text that deletes broadly
	CommandComputed Rule = "command-computed" // what runs is known to the running shell only
	LibraryPreload  Rule = "library-preload"  // puts a library into every program that starts
	PackageSource   Rule = "package-source"   // installs or runs a package from an address of its own
	SecretUpload    Rule = "secret-upload"    // sends credentials, or the environment, away
	NetworkUpload   Rule = "network-upload"
	SelfProtection  Rule = "self-protection" // touches auditd itself
)
