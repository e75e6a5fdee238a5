#!/bin/sh
# Build stage: puts packages, wheels and the project together below /rootfs.
# Usage: unpack.sh SECONDS-SINCE-1970
set -eu
root=/rootfs
mkdir -p "$root/var/lib/dpkg/status.d"
for deb in /debs/*.deb; do
    dpkg-deb --extract "$deb" "$root"
    name=$(dpkg-deb --field "$deb" Package)
    dpkg-deb --field "$deb" > "$root/var/lib/dpkg/status.d/$name"
done

# What nothing at run time reads: other character sets, manuals, tools, skeletons.
cd "$root"
find usr/share/doc ! -type d ! -name copyright -delete
find . -depth -type d -name gconv -exec rm -r {} +
find usr/share -mindepth 1 -maxdepth 1 ! -name doc ! -name common-licenses \
    -exec rm -r {} +
rm -rf usr/sbin sbin home media mnt opt srv boot root usr/games usr/include usr/src var/backups var/cache var/local var/mail var/spool \
    var/tmp tmp etc/python3.13 etc/update-motd.d etc/profile.d etc/skel etc/dpkg etc/issue* etc/motd
for module in ensurepip idlelib pydoc_data turtledemo sqlite3 curses dbm tkinter \
    test _pyrepl turtle.py sitecustomize.py; do
    rm -rf "usr/lib/python3.13/$module"
done
for module in _curses _curses_panel _dbm _gdbm _sqlite3 _tkinter readline; do
    rm -f usr/lib/python3.13/lib-dynload/"$module".*
done
ln -sf python3.13 usr/bin/python3
mkdir -p etc/kubernetes/node-feature-discovery
echo 'nobody:x:65534:65534:nobody:/:/usr/sbin/nologin' > etc/passwd
echo 'nogroup:x:65534:' > etc/group
find . -depth -type d -empty ! -path './etc/kubernetes/*' ! -path ./proc ! -path ./sys \
    ! -path ./dev ! -path ./run -delete

packages=$root/usr/lib/python3/dist-packages
python3 -m pip wheel --quiet --no-deps --wheel-dir /project /src
for wheel in /wheels/*.whl /project/*.whl; do
    python3 -m zipfile -e "$wheel" "$packages"
done

python3 /build/finish.py "$root"
python3 /build/sbom.py "$root" /debs /wheels /project \
    > "$root/usr/share/node-feature-discovery.cdx.json"
chmod -R u=rwX,go=rX "$root"
chmod 0555 "$root"/usr/bin/*
find "$root" -exec touch --no-dereference --date="@$1" {} +
