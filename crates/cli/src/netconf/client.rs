//! The client: ncclient, in a Python that has it. It carries out what it is asked, a line of JSON
//! each; when this process ends, however it does, its input ends and so does it.

use anyhow::{Context, bail};
use onbeat_configuration::push::Event;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const CLIENT: &str = include_str!("client.py");
/// Where ncclient may be: what the user calls Python, and where distributions install it.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];
/// Octets of an answer: a configuration, with its escapes.
const ANSWER_OCTETS: u64 = 256 << 20;
/// For how long a device may take for one request.
const TIMEOUT_S: u32 = 30;

/// Where a device is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Address {
    /// User, host and port as they are shown.
    pub(super) shown: String,
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) port: u16,
}

/// How users prove who they are.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Login {
    /// The file of a private key; without one, those of the agent and of the home directory.
    pub(super) key: Option<String>,
    /// Whether a password is asked for at the terminal.
    pub(super) asks: bool,
}

/// A line to the client.
#[derive(Serialize)]
struct Request<'a> {
    device: usize,
    rpc: Option<&'a str>,
    #[serde(flatten)]
    address: &'a Address,
    #[serde(flatten)]
    login: &'a Login,
    timeout_s: u32,
}

/// A line of the client.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Answer {
    Ready(()),
    Missing(String),
    Capabilities(Vec<String>),
    Reply(String),
    Lost(String),
    UnknownHost(String),
}

/// A client that runs.
pub(super) struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    login: Login,
}

impl Client {
    /// Starts it.
    ///
    /// # Errors
    /// There is no Python, or it has no ncclient.
    pub(super) fn start(login: Login) -> anyhow::Result<Self> {
        let mut missing = None;
        for python in PYTHONS {
            let child = Command::new(python)
                .args(["-c", CLIENT])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn();
            let mut child = match child {
                Ok(child) => child,
                Err(why) => {
                    missing.get_or_insert(format!("{python}: {why}"));
                    continue;
                }
            };
            let input = child.stdin.take().context("its input is a pipe")?;
            let output = BufReader::new(child.stdout.take().context("its output is a pipe")?);
            let mut client = Self { child, input, output, login: login.clone() };
            match client.answer()? {
                Answer::Ready(()) => return Ok(client),
                Answer::Missing(why) => missing = Some(format!("{python}: {why}")),
                _ => bail!("{python}: the client answers what nobody asked"),
            }
        }
        bail!(
            "devices are reached by ncclient, which is missing ({}): install Debian's package \
             python3-ncclient, or `python3 -m pip install ncclient`",
            missing.unwrap_or_default()
        )
    }

    /// Carries a request out; none opens a session.
    ///
    /// # Errors
    /// The client has ended, and with it all sessions.
    pub(super) fn request(
        &mut self,
        device: usize,
        address: &Address,
        rpc: Option<&str>,
    ) -> anyhow::Result<Event> {
        let login = &self.login;
        let request = Request { device, rpc, address, login, timeout_s: TIMEOUT_S };
        let line = serde_json::to_string(&request)? + "\n";
        self.input.write_all(line.as_bytes()).context("the NETCONF client has ended")?;
        Ok(match self.answer()? {
            Answer::Capabilities(all) => Event::Connected(all),
            Answer::Reply(text) => Event::Answered(text),
            Answer::Lost(why) => Event::Lost(why),
            Answer::UnknownHost(fingerprint) => {
                let Address { host, port, .. } = address;
                Event::Lost(format!(
                    "its host key ({fingerprint}) is not in ~/.ssh/known_hosts, or another one is: \
                     verify it, then let `ssh -p {port} {host}` or ssh-keyscan(1) add it"
                ))
            }
            Answer::Ready(()) | Answer::Missing(_) => bail!("the NETCONF client begins again"),
        })
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let mut line = String::new();
        let read = self.output.by_ref().take(ANSWER_OCTETS).read_line(&mut line);
        if read.context("the NETCONF client")? == 0 {
            bail!("the NETCONF client has ended: devices take back what is not confirmed");
        }
        serde_json::from_str(&line).context("the NETCONF client's answer")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It ends with its input anyway; nothing is worth waiting for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
