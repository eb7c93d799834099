package command

import "testing"

// The owner's auditd lives in /s/auditd and listens on 17841.
var guardEnv = &Env{Workspaces: []string{"/home/ann/project"}, Home: "/home/ann", Port: 17841, ProxyPort: 17842,
	Protected: []string{"/x/s/auditd", "/x/auditd-config"}, Guarded: []string{"/opt/bin/auditd", "/home/ann/.claude/settings.json"}}

func judge(t *testing.T, env *Env, table map[string]string) {
	t.Helper()
	for text, want := range table {
		v := ""
		for _, e := range Shell(text, env).Effects {
			if e.Hard {
				v = "hard " + string(e.Rule)
				if e.Rule == SelfProtection || want == v {
					break
				}
			} else if v == "" {
				v = "soft " + string(e.Rule)
			}
		}
		if v != want {
			t.Errorf("%s\n\tgot  %q\n\twant %q", text, v, want)
		}
	}
}

func TestAuditdsOwnFilesUnderEveryName(t *testing.T) {
	judge(t, guardEnv, map[string]string{
		"cat /x//auditd-config/./policy.yaml":                "hard self-protection",
		"cat /x/a/../auditd-config/policy.yaml":              "hard self-protection",
		"cat $XDG_STATE_HOME//auditd/hook.token":             "hard self-protection",
		"cat ${XDG_CONFIG_HOME}/./auditd/policy.yaml":        "hard self-protection",
		"cat ${HOME}/.config/x/../auditd/policy.yaml":        "hard self-protection",
		"cd /x && cat s/auditd/hook.token":                   "hard self-protection",
		"cd /x/s; cat */*.token":                             "hard self-protection",
		"cd ../../.. && cat x/s/auditd/hook.token":           "hard self-protection",
		"cat ../../../x/s/auditd/hook.token":                 "hard self-protection",
		"cat /x/s/audit?/hook.*":                             "hard self-protection",
		"cat /x/*/*/hook.token":                              "hard self-protection",
		"rm -rf /x/s":                                        "hard self-protection",
		"rm -rf /x/s/*":                                      "hard self-protection",
		"mv /x /y":                                           "hard self-protection",
		"mv ~/.local/state /tmp/q":                           "hard self-protection",
		"chmod -R 000 /x/s":                                  "hard self-protection",
		"chown -R eve ~/.config":                             "hard self-protection",
		"mount --bind /tmp/e /x/s":                           "hard self-protection",
		"cp -r /x/s /tmp/c":                                  "hard self-protection",
		"cp -r evil/auditd ~/.config/":                       "hard self-protection",
		"tar czf /tmp/a.tgz /x/s":                            "hard self-protection",
		"grep -r token ~/.local/state":                       "hard self-protection",
		"find /x/s -type f -delete":                          "hard self-protection",
		"find ~/.local/state -name '*.token' -exec cat {} +": "hard self-protection",
		"cp $(which auditd) /tmp/a":                          "hard self-protection",
		"ln -s /x/s /tmp/l":                                  "hard self-protection",
		"cat $(find / -name hook.token)":                     "hard self-protection",
		"find ~ -name '*.token' | xargs cat":                 "hard self-protection",
		"rm /opt/bin/auditd":                                 "hard self-protection",
		"cp /opt/bin/auditd /tmp/q":                          "hard self-protection",
		"cat x > /opt/bin/auditd":                            "hard self-protection",
		"echo '{}' > ~/.claude/settings.json":                "hard self-protection",
		"echo '{}' | tee .claude/settings.local.json":        "hard self-protection",
		"sed -i s/a/b/ ~/.claude/settings.json":              "hard self-protection",

		"cat ~/.claude/settings.json":          "",
		"ls ~/.config/*":                       "",
		"ls -la ~/.config":                     "",
		"cat *.token":                          "",
		"rm *.db":                              "",
		"grep -r TODO .":                       "",
		"grep -rn TODO src/*":                  "",
		"tar czf /tmp/a.tgz .":                 "",
		"tar xzf a.tgz -C ~/.local":            "",
		"cp -r src /tmp/c":                     "",
		"cp init.lua ~/.config/":               "",
		"find . -name '*.go' -exec gofmt {} +": "",
		"chmod 600 ~/.config/app/key":          "",
		"cd .. && ls":                          "",
		"ln -s ../a b":                         "",
		"find . -name '*.token'":               "",
		"find ~ -name '*.db'":                  "",
		"mv a b":                               "",
		"/opt/bin/auditd status":               "",
	})
}

func TestAuditdsProcessUnderEveryName(t *testing.T) {
	judge(t, guardEnv, map[string]string{
		"fuser -k 17841/tcp":       "hard self-protection",
		"fuser -k 17842/tcp":       "hard self-protection",
		"fuser -k -n tcp 17841":    "hard self-protection",
		"kill -9 -1":               "hard self-protection",
		"kill -KILL -- -1":         "hard self-protection",
		"pkill -u ann":             "hard self-protection",
		"pkill -f serve":           "hard self-protection",
		"pkill -f 'aud.*'":         "hard self-protection",
		"pkill '^a.ditd$'":         "hard self-protection",
		"killall -r 'aud.*'":       "hard self-protection",
		"killall 'audit?'":         "hard self-protection",
		"kill $(lsof -t -i:17841)": "hard self-protection",
		"kill $(ss -lptn 'sport = :17841' | cut -d= -f2)": "hard self-protection",
		"kill $(pgrep aud)":                            "hard self-protection",
		"pgrep -f serve | xargs kill -9":               "hard self-protection",
		"kill $(ps aux | grep aud | awk '{print $2}')": "hard self-protection",
		"gdb -p $(pgrep auditd)":                       "hard self-protection",
		"strace -f -p $(pidof auditd)":                 "hard self-protection",
		"cat /proc/*/mem":                              "hard self-protection",
		"dd if=/proc/$(pgrep aud)/mem":                 "hard self-protection",
		"curl http://127.0.0.1:$((17840+1))/x":         "hard self-protection",
		"P=17840; curl http://127.0.0.1:$((P + 1))/x":  "hard self-protection",
		"expect -c 'spawn auditd approve q1'":          "hard self-protection",
		"$(printf 'aud%s' itd) approve q1":             "hard self-protection",
		"$(echo auditd) approve q1":                    "hard self-protection",
		"`printf '\\x61uditd'` approve q1":             "hard self-protection",
		"$(which auditd) approve q1":                   "hard self-protection",

		"python3 -c 'import os; os.kill(int(os.popen(\"pgrep auditd\").read()),9)'": "hard self-protection",

		"kill $(ps aux | awk '/auditd/{print $2}')": "hard self-protection",
		"pkill 'a{1}u{1}ditd'":                      "hard self-protection",

		"kill $(ps aux | awk '/node/{print $2}')": "soft process-kill",
		"kill -9 4711":                      "soft process-kill",
		"kill $(pgrep node)":                "soft process-kill",
		"kill $(lsof -t -i:3000)":           "soft process-kill",
		"pkill -f vite":                     "soft process-kill",
		"pkill -u ann node":                 "soft process-kill",
		"killall node":                      "soft process-kill",
		"fuser -k 3000/tcp":                 "soft process-kill",
		"gdb -p 4711":                       "soft process-kill",
		"$(cat names | head -1) approve q1": "soft command-computed",
		"$(which python3) x.py":             "",
		"$(npm bin)/eslint .":               "",
		"$EDITOR a.txt":                     "",
		"lsof -i:3000":                      "",
		"ps aux | grep node":                "",
		"gdb ./a.out":                       "",
		"printf '%s\\n' a b":                "",
		"echo $((1+2))":                     "",
	})
	for text, want := range map[string]string{"curl http://127.0.0.1:$(cat p)/x": "http://127.0.0.1", "nc localhost:$P": "localhost"} {
		if h := Shell(text, guardEnv).Hosts; len(h) != 1 || h[0].Text != want {
			t.Errorf("%s: hosts %v", text, h)
		}
	}
}
