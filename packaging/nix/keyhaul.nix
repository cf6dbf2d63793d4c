# Not tested with a Nix store. `make -C packaging packages` checks its syntax.
#
# The Swift of nixpkgs is older than 6.2, so this unpacks the program from a release's tar.gz:
#
#   pkgs.callPackage ./keyhaul.nix { src = ./keyhaul-0.2.0-linux-x86_64.tar.gz; }
{ lib, stdenv, autoPatchelfHook, src }:

stdenv.mkDerivation {
  pname = "keyhaul";
  version = "0.2.0";
  inherit src;

  nativeBuildInputs = [ autoPatchelfHook ];
  dontConfigure = true;
  dontBuild = true;

  installPhase = ''
    runHook preInstall
    mkdir -p $out
    cp -R . $out/
    runHook postInstall
  '';

  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/keyhaul --version
  '';

  meta = {
    description = "Inspect iOS keychain backups and plan moves between devices";
    license = lib.licenses.asl20;
    platforms = [ "x86_64-linux" ];
    mainProgram = "keyhaul";
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  };
}
