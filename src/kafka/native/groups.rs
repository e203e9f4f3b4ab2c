//! A classic group with the bytes of its members, through ListGroups and DescribeGroups.

use std::time::Duration;

use rdkafka::bindings as sys;

use super::{Fault, Handle, c_text, describe_code, items, local, rd_kafka_list_groups, text};
use crate::kafka::port::{Group, GroupMember};

impl Handle {
    /// Describes a group; `None` if no broker lists it.
    pub fn describe_group(&mut self, group: &str, timeout: Duration) -> Result<Option<Group>, Fault> {
        let name = c_text(group)?;
        let mut list = std::ptr::null();
        // SAFETY: client and name are live; the answer is ours until it is destroyed below.
        unsafe {
            let code = rd_kafka_list_groups(self.rk.as_ptr(), name.as_ptr(), &raw mut list, super::millis(timeout));
            // A part is enough if the group is in it: the brokers that did not answer do not coordinate it.
            let Some(answer) = list.as_ref().filter(|_| code == 0 || code == local::PARTIAL) else {
                return Err(Fault::of_code(if code == 0 { local::BAD_MSG } else { code }));
            };
            let count = usize::try_from(answer.group_cnt).unwrap_or(0);
            let found = items(answer.groups, count).iter().find(|info| text(info.group) == group).map(|info| read(info));
            sys::rd_kafka_group_list_destroy(list);
            match found {
                Some(found) => found.map(Some),
                None if code == 0 => Ok(None),
                None => Err(Fault::of_code(local::TIMED_OUT)),
            }
        }
    }
}

/// # Safety
/// `info` is live, as is all that it points to.
unsafe fn read(info: &sys::rd_kafka_group_info) -> Result<Group, Fault> {
    // SAFETY: everything read belongs to the group. The code is read as a number, as it may be one that the bindings do not know.
    unsafe {
        let code = (&raw const info.err).cast::<i32>().read();
        if code != 0 {
            return Err(Fault::new(code, describe_code(code)));
        }
        let count = usize::try_from(info.member_cnt).unwrap_or(0);
        let members = items(info.members, count).iter().map(|member| GroupMember {
            id: text(member.member_id),
            client_id: text(member.client_id),
            host: text(member.client_host),
            metadata: items(member.member_metadata.cast::<u8>(), size(member.member_metadata_size)).to_vec(),
            assignment: items(member.member_assignment.cast::<u8>(), size(member.member_assignment_size)).to_vec(),
        });
        Ok(Group {
            state: text(info.state),
            protocol_type: text(info.protocol_type),
            protocol: text(info.protocol),
            members: members.collect(),
        })
    }
}

fn size(bytes: i32) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}
