# What a box holds: one source for boxes at E2B (`make template`) and for boxes by
# this machine's container engine (`make image`). Its context is a folder with the
# program `ship`, a static one.
#
# Only FROM, RUN, COPY and ENV: E2B's builder knows little more, and no stages.
# Tools that your repositories need are added here, or in an image of yours that
# begins with `FROM ship-box`.
FROM debian:trixie-slim

ENV DEBIAN_FRONTEND=noninteractive

# git, setsid and flock (util-linux) and the certificates are what ship needs; the
# rest is for what is built and tested in a box.
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
    ca-certificates curl file git git-lfs jq less openssh-client patch procps ripgrep unzip util-linux xz-utils zip \
    build-essential cmake pkg-config \
    python3 python3-dev python3-pip python3-venv python-is-python3 \
    nodejs npm \
    golang-go \
 && rm -rf /var/lib/apt/lists/*

# The coding agent is one program. What npm unpacks around it is not needed.
RUN npm install -g --no-audit --no-fund opencode-ai@1.18.33 \
 && install -D -m 755 "$(npm root -g)/opencode-ai/bin/opencode.exe" /opt/ship/opencode \
 && npm uninstall -g opencode-ai \
 && rm -rf /root/.npm /root/.cache /tmp/* \
 && /opt/ship/opencode --version

# The editor of `ship sessions attach --editor`, from its release, which has a
# Node.js of its own: what npm has of it would be compiled here.
RUN curl -fsSL --retry 3 -o /tmp/editor.deb "https://github.com/coder/code-server/releases/download/v4.96.4/code-server_4.96.4_$(dpkg --print-architecture).deb" \
 && apt-get install -y --no-install-recommends /tmp/editor.deb \
 && rm -rf /tmp/editor.deb /root/.config /var/lib/apt/lists/* \
 && code-server --version | grep -F 4.96.4 \
 && rm -rf /root/.config /root/.local

# The guest under the name that holds its hash, so that ship need not bring it to
# every new box at E2B. The container engine is shown ship's own.
COPY ship /tmp/ship
RUN install -m 755 /tmp/ship "/opt/ship/ship-$(sha256sum /tmp/ship | cut -c1-16)" && rm -f /tmp/ship
