#!/bin/sh
# Puts every .opencode of a repository aside, and back.
#
#   shelf.sh shelve   REPO SHELF
#   shelf.sh unshelve REPO SHELF
#
# Each shelving makes a new numbered folder, so that nothing on the shelf is
# ever overwritten. What git has committed comes back from git's index, which
# may have moved on by a merge; the rest comes back from the shelf, newest
# first, and never over something that is there. Both verbs can be repeated
# after they were interrupted anywhere.
set -eu

verb=$1 repo=$2 shelf=$3

# The repository may belong to another uid than ours, and nothing that it
# configures is to run.
repo_git() {
	git -c safe.directory='*' -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"
}

# tracked lists index entries below any .opencode; options go to ls-files.
tracked() {
	repo_git ls-files -z "$@" -- ':(glob)**/.opencode' ':(glob)**/.opencode/**'
}

there() { [ -e "$1" ] || [ -L "$1" ]; }

folder() { [ -d "$1" ] && [ ! -L "$1" ]; }

# found lists every .opencode below the current folder. Links are not followed.
found() { find . -name .git -prune -o -name .opencode -prune -print0; }

# merge FROM TO moves what is not there yet.
merge() {
	if ! there "$2"; then
		mv "$1" "$2"
	elif folder "$1" && folder "$2"; then
		for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
			if there "$entry"; then merge "$entry" "$2/${entry##*/}"; fi
		done
	fi
}

# hide tells git not to look at the files that are as committed. Files with
# changes of their own are left to the shelf.
hide() {
	tracked | sort -zu >"$1.tracked"
	tracked -m | sort -zu >"$1.changed"
	comm -z -23 "$1.tracked" "$1.changed" >"$1.hidden"
	repo_git update-index -z --skip-worktree --stdin <"$1.hidden" || rm -f "$1.hidden"
}

# forget takes off the shelf what git had hidden and has deleted since.
forget() {
	if ! [ -f "$1.hidden" ] || ! in_git; then return 0; fi
	tracked | sort -zu >"$1.tracked"
	comm -z -23 "$1.hidden" "$1.tracked" >"$1.changed"
	(cd "$1" && xargs -0 -r rm -f -- <"$1.changed")
}

# show lets git look again, and writes what was hidden as git has it now.
show() {
	hidden=$(mktemp)
	tracked -t | sed -nz 's/^S //p' >"$hidden"
	repo_git update-index -z --no-skip-worktree --stdin <"$hidden"
	write <"$hidden"
	rm -f "$hidden"
}

# write makes missing files from the index. Some may be impossible, where the
# agent has put a file or a link in the place of a folder.
write() { repo_git checkout-index -q -u -z --stdin || true; }

in_git() { repo_git rev-parse --git-dir >/dev/null 2>&1; }

shelve() {
	cd "$repo" 2>/dev/null || return 0
	[ -n "$(found | tr '\0' '\n' | head -n 1)" ] || return 0
	n=1
	while there "$shelf/$n"; do n=$((n + 1)); done
	mkdir -p "$shelf/$n"
	# What git will not hide (an unfinished merge) comes back all the same.
	if in_git; then hide "$shelf/$n" || true; fi
	found | xargs -0 -r -n 1 /bin/sh "$0" put "$repo" "$shelf/$n"
}

unshelve() {
	cd "$repo" 2>/dev/null || return 0
	if in_git; then show; fi
	[ -d "$shelf" ] || return 0
	n=1
	while there "$shelf/$n"; do n=$((n + 1)); done
	while [ "$n" -gt 1 ]; do
		n=$((n - 1))
		cd "$repo"
		forget "$shelf/$n"
		cd "$shelf/$n"
		found | xargs -0 -r -n 1 /bin/sh "$0" back "$repo" "$shelf/$n"
	done
	cd "$repo"
	if in_git; then tracked -d | write; fi
	rm -rf "$shelf"
}

# put and back move one .opencode, $4, which is relative to the folders.
put() {
	mkdir -p "$shelf/$(dirname "$4")"
	mv "$repo/$4" "$shelf/$4"
}

# Where the agent has made a file or a link of a folder around it, there is no
# place to go back to.
back() {
	parent=$(dirname "$4")
	cd "$repo"
	if through_link "$parent"; then return 0; fi
	mkdir -p "$parent" 2>/dev/null || return 0
	merge "$shelf/$4" "$repo/$4"
}

# through_link says whether any part of a relative path is a link.
through_link() {
	rest=$1
	while [ "$rest" != . ]; do
		if [ -L "$rest" ]; then return 0; fi
		rest=$(dirname "$rest")
	done
	return 1
}

case $verb in
shelve | unshelve) "$verb" ;;
put | back) "$verb" "$@" ;;
*)
	echo "unknown verb: $verb" >&2
	exit 2
	;;
esac
