! Fortran 2008 with the module mpi_f08: handles and statuses of types of their own, arguments left out.
program f08_mix
  use mpi_f08
  implicit none
  include 'oracle.inc'
  integer :: rank, size, right, left, total, sum, i
  integer :: out(100), in(100)
  call MPI_Init()
  call say('MPI_Init')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call say('MPI_Comm_rank comm=MPI_COMM_WORLD rank='//num(rank))
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call say('MPI_Comm_size comm=MPI_COMM_WORLD size='//num(size))
  right = modulo(rank + 1, size)
  left = modulo(rank - 1, size)
  sum = 0
  out = [(1000*rank + i, i=1, 100)]
  in = 0

  call messages
  call completion
  call collective
  call communicators
  call types
  call operations

  call MPI_Reduce(sum, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  call say('MPI_Reduce inplace=false count=1 type=MPI_INTEGER op=MPI_SUM root=0 comm=MPI_COMM_WORLD')
  call MPI_Finalize()
  call say('MPI_Finalize')
  call orwrit(rank)
  if (rank == 0) print '(a,i0)', 'f08_mix: ok ', total

contains

  subroutine take
    sum = sum + dot_product(in, [(i, i=1, 100)])
    in = 0
  end subroutine take

  ! Everyone but the first receives before it sends.
  subroutine messages
    type(MPI_Status) :: status
    type(MPI_Message) :: message
    integer :: turn, n, s, fails
    logical :: flag
    do turn = 1, 2
       if ((rank == 0) .eqv. (turn == 1)) then
          call MPI_Send(out, 10, MPI_INTEGER, right, 7, MPI_COMM_WORLD)
          call say('MPI_Send count=10 type=MPI_INTEGER dest='//num(right)//' tag=7 comm=MPI_COMM_WORLD')
          call MPI_Ssend(out, 11, MPI_REAL, right, 8, MPI_COMM_WORLD)
          call say('MPI_Ssend count=11 type=MPI_REAL dest='//num(right)//' tag=8 comm=MPI_COMM_WORLD')
       else
          call MPI_Recv(in, 12, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, status)
          call say('MPI_Recv count=12 type=MPI_INTEGER source=MPI_ANY_SOURCE tag=7 comm=MPI_COMM_WORLD rsource='// &
               num(status%MPI_SOURCE)//' rtag='//num(status%MPI_TAG)//' bytes=40')
          call MPI_Get_count(status, MPI_INTEGER, n)
          call say('MPI_Get_count type=MPI_INTEGER count='//num(n))
          sum = sum + n
          call take
          call MPI_Recv(in, 13, MPI_REAL, left, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
          call say('MPI_Recv count=13 type=MPI_REAL source='//num(left)//' tag=MPI_ANY_TAG comm=MPI_COMM_WORLD rsource='// &
               num(left)//' rtag=8 bytes=44')
          call take
       end if
    end do
    call MPI_Sendrecv(out, 14, MPI_INTEGER, right, 20 + rank, in, 15, MPI_INTEGER, left, 20 + left, MPI_COMM_WORLD, status)
    call say('MPI_Sendrecv sendcount=14 sendtype=MPI_INTEGER dest='//num(right)//' sendtag='//num(20 + rank)// &
         ' recvcount=15 recvtype=MPI_INTEGER source='//num(left)//' recvtag='//num(20 + left)// &
         ' comm=MPI_COMM_WORLD rsource=null rtag=null bytes=56')
    call take
    call MPI_Send(out, 9, MPI_INTEGER, right, 16, MPI_COMM_WORLD)
    call say('MPI_Send count=9 type=MPI_INTEGER dest='//num(right)//' tag=16 comm=MPI_COMM_WORLD')
    fails = -1
    do
       call MPI_Improbe(left, 16, MPI_COMM_WORLD, flag, message, status)
       fails = fails + 1
       if (flag) exit
    end do
    if (fails > 0) call say('MPI_Improbe source='//num(left)//' tag=16 comm=MPI_COMM_WORLD flag=false request=null '// &
         'rsource=null rtag=null bytes=null times='//num(fails))
    s = slsend()
    call say('MPI_Improbe source='//num(left)//' tag=16 comm=MPI_COMM_WORLD flag=true request='//num(s)// &
         ' rsource=null rtag=null bytes=36 times=1')
    call MPI_Mrecv(in, 10, MPI_INTEGER, message, status)
    call say('MPI_Mrecv count=10 type=MPI_INTEGER request='//num(s)//' rsource=null rtag=null bytes=36')
    call slfree(s)
    call take
    ! A section without gaps is passed as it is.
    call MPI_Sendrecv_replace(out(11:30), 20, MPI_INTEGER, right, 17, left, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call say('MPI_Sendrecv_replace count=20 type=MPI_INTEGER dest='//num(right)//' sendtag=17 source='//num(left)// &
         ' recvtag=17 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=80')
    sum = sum + out(30)
  end subroutine messages

  subroutine completion
    type(MPI_Request) :: q(3)
    type(MPI_Status) :: status(3)
    integer :: s(3), turn, n, at, k, where(3)
    logical :: flag
    do turn = 1, 4
       call MPI_Irecv(in, 20, MPI_INTEGER, left, 31, MPI_COMM_WORLD, q(1))
       s(1) = slrecv(60)
       call say('MPI_Irecv count=20 type=MPI_INTEGER source='//num(left)//' tag=31 comm=MPI_COMM_WORLD request='//num(s(1)))
       q(2) = MPI_REQUEST_NULL
       s(2) = -1
       call MPI_Isend(out, 15, MPI_INTEGER, right, 31, MPI_COMM_WORLD, q(3))
       s(3) = slsend()
       call say('MPI_Isend count=15 type=MPI_INTEGER dest='//num(right)//' tag=31 comm=MPI_COMM_WORLD request='//num(s(3)))
       select case (turn)
       case (1)
          call MPI_Waitall(3, q, status)
          call say('MPI_Waitall n=3 requests='//trim(slots(3, s))//' completed='// &
               done(2, [1, 3], s, [status(1)%MPI_SOURCE, 0], [status(1)%MPI_TAG, 0]))
       case (2)
          do k = 1, 2
             call MPI_Waitany(3, q, at, status(1))
             call finished(q, s, n, where)
             call say('MPI_Waitany n=3 requests='//trim(slots(3, s))//' completed='// &
                  done(1, where, s, status(1:1)%MPI_SOURCE, status(1:1)%MPI_TAG))
             s(where(1)) = -1
          end do
          call MPI_Testany(3, q, at, flag, status(1))
          call say('MPI_Testany n=3 requests=[null,null,null] flag=true completed=[] index=MPI_UNDEFINED times=1')
       case (3)
          k = 0
          do while (k < 2)
             call MPI_Waitsome(3, q, n, where, status)
             call finished(q, s, n, where)
             call say('MPI_Waitsome n=3 requests='//trim(slots(3, s))//' completed='// &
                  done(n, where, s, status%MPI_SOURCE, status%MPI_TAG))
             s(where(1:n)) = -1
             k = k + n
          end do
       case (4)
          k = -1
          do
             call MPI_Testall(3, q, flag, MPI_STATUSES_IGNORE)
             k = k + 1
             if (flag) exit
          end do
          if (k > 0) call say('MPI_Testall n=3 requests='//trim(slots(3, s))//' flag=false completed=[] times='//num(k))
          call say('MPI_Testall n=3 requests='//trim(slots(3, s))//' flag=true completed='// &
               trim(done(2, [1, 3], s, [left, 0], [31, 0]))//' times=1')
       end select
       call take
    end do
    call MPI_Send_init(out, 6, MPI_INTEGER, MPI_PROC_NULL, 32, MPI_COMM_WORLD, q(1))
    s(1) = slsini()
    call say('MPI_Send_init count=6 type=MPI_INTEGER dest=MPI_PROC_NULL tag=32 comm=MPI_COMM_WORLD request='//num(s(1)))
    call MPI_Start(q(1))
    call say('MPI_Start request='//num(s(1)))
    call MPI_Wait(q(1), MPI_STATUS_IGNORE)
    call say('MPI_Wait requests='//trim(slots(1, s))//' completed='//done(1, [1], s, [0], [0]))
    call MPI_Request_free(q(1))
    call say('MPI_Request_free request='//num(s(1)))
    call slfree(s(1))
  end subroutine completion

  ! The requests that have become null. The positions that MPI_Waitany and MPI_Waitsome return are not used: this
  ! interface of MPICH 4.0 counts them from 0.
  subroutine finished(q, s, n, where)
    type(MPI_Request), intent(in) :: q(3)
    integer, intent(in) :: s(3)
    integer, intent(out) :: n, where(3)
    integer :: k
    n = 0
    do k = 1, 3
       if (s(k) >= 0 .and. q(k) == MPI_REQUEST_NULL) then
          n = n + 1
          where(n) = k
       end if
    end do
  end subroutine finished

  subroutine collective
    type(MPI_Request) :: q
    integer :: root, s
    double precision :: x(3)
    root = size - 1
    call MPI_Barrier(MPI_COMM_WORLD)
    call say('MPI_Barrier comm=MPI_COMM_WORLD')
    if (rank == root) in(3) = 17
    call MPI_Bcast(in, 6, MPI_INTEGER, root, MPI_COMM_WORLD)
    call say('MPI_Bcast count=6 type=MPI_INTEGER root='//num(root)//' comm=MPI_COMM_WORLD')
    call take
    call MPI_Gather(out, 3, MPI_INTEGER, in, 3, MPI_INTEGER, root, MPI_COMM_WORLD)
    if (rank == root) then
       call say('MPI_Gather inplace=false sendcount=3 sendtype=MPI_INTEGER recvcount=3 recvtype=MPI_INTEGER root='// &
            num(root)//' comm=MPI_COMM_WORLD')
    else
       call say('MPI_Gather inplace=false sendcount=3 sendtype=MPI_INTEGER recvcount=0 recvtype=null root='// &
            num(root)//' comm=MPI_COMM_WORLD')
    end if
    call take
    x = [dble(rank), 0.5d0*rank, -dble(rank)]
    call MPI_Allreduce(MPI_IN_PLACE, x, 3, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    call say('MPI_Allreduce inplace=true count=3 type=MPI_DOUBLE_PRECISION op=MPI_MAX comm=MPI_COMM_WORLD')
    sum = sum + int(x(1) + 2*x(2) + x(3))
    call MPI_Alltoall(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER, MPI_COMM_WORLD)
    call say('MPI_Alltoall inplace=false sendcount=2 sendtype=MPI_INTEGER recvcount=2 recvtype=MPI_INTEGER '// &
         'comm=MPI_COMM_WORLD')
    call take
    call MPI_Iscan(out, in, 5, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, q)
    s = slsend()
    call say('MPI_Iscan inplace=false count=5 type=MPI_INTEGER op=MPI_SUM comm=MPI_COMM_WORLD request='//num(s))
    call MPI_Wait(q, MPI_STATUS_IGNORE)
    call say('MPI_Wait requests='//trim(slots(1, [s]))//' completed='//done(1, [1], [s], [0], [0]))
    call take
  end subroutine collective

  subroutine communicators
    type(MPI_Comm) :: half, cart, dup
    type(MPI_Group) :: world, some
    integer :: color, n, dims(2), coords(2), from, to
    logical :: periods(2)
    color = merge(MPI_UNDEFINED, mod(rank, 2) + 5, rank == 0)
    call MPI_Comm_split(MPI_COMM_WORLD, color, 40 - rank, half)
    if (half == MPI_COMM_NULL) then
       call say('MPI_Comm_split comm=MPI_COMM_WORLD color=MPI_UNDEFINED key=40 newcomm=null')
    else
       call say('MPI_Comm_split comm=MPI_COMM_WORLD color='//num(color)//' key='//num(40 - rank)//' newcomm=new:half')
       call MPI_Allreduce(rank, n, 1, MPI_INTEGER, MPI_SUM, half)
       call say('MPI_Allreduce inplace=false count=1 type=MPI_INTEGER op=MPI_SUM comm=half')
       sum = sum + n
       call MPI_Comm_free(half)
       call say('MPI_Comm_free freecomm=half')
    end if
    call MPI_Comm_dup(MPI_COMM_WORLD, dup)
    call say('MPI_Comm_dup comm=MPI_COMM_WORLD newcomm=new:dup')
    call MPI_Comm_compare(dup, MPI_COMM_WORLD, n)
    call say('MPI_Comm_compare comm=dup comm2=MPI_COMM_WORLD result=MPI_CONGRUENT')
    if (n == MPI_CONGRUENT) sum = sum + 1
    call MPI_Comm_group(dup, world)
    call say('MPI_Comm_group comm=dup newgroup=new:world')
    call MPI_Group_range_incl(world, 1, reshape([size - 1, 0, -1], [3, 1]), some)
    call say('MPI_Group_range_incl group=world n=1 ranges='//trim(list(3, [size - 1, 0, -1]))//' newgroup=new:backward')
    call MPI_Group_rank(some, n)
    call say('MPI_Group_rank group=backward rank='//num(n))
    sum = sum + 3*n
    call MPI_Group_free(some)
    call say('MPI_Group_free freegroup=backward')
    call MPI_Group_free(world)
    call say('MPI_Group_free freegroup=world')
    call MPI_Comm_free(dup)
    call say('MPI_Comm_free freecomm=dup')
    call MPI_Cart_create(MPI_COMM_WORLD, 2, [1, size], [.true., .false.], .false., cart)
    call say('MPI_Cart_create comm=MPI_COMM_WORLD ndims=2 dims='//trim(list(2, [1, size]))// &
         ' periods=[true,false] reorder=0 newcomm=new:cart')
    call MPI_Cart_get(cart, 2, dims, periods, coords)
    call say('MPI_Cart_get comm=cart maxdims=2 dims='//trim(list(2, dims))//' periods=[1,0] coords='//list(2, coords))
    sum = sum + count(periods) + coords(2)
    call MPI_Cart_shift(cart, 1, 1, from, to)
    call say('MPI_Cart_shift comm=cart direction=1 disp=1 source='//rnk(from)//' dest='//rnk(to))
    call MPI_Send(out, 4, MPI_INTEGER, to, 5, cart)
    call say('MPI_Send count=4 type=MPI_INTEGER dest='//rnk(to)//' tag=5 comm=cart')
    call MPI_Recv(in, 5, MPI_INTEGER, from, 5, cart, MPI_STATUS_IGNORE)
    call say('MPI_Recv count=5 type=MPI_INTEGER source='//rnk(from)//' tag=5 comm=cart rsource=null rtag=null bytes='// &
         num(merge(0, 16, from == MPI_PROC_NULL)))
    call take
    call MPI_Comm_free(cart)
    call say('MPI_Comm_free freecomm=cart')
  end subroutine communicators

  subroutine types
    type(MPI_Datatype) :: t, u
    integer(MPI_ADDRESS_KIND) :: lb, extent, places(2)
    integer :: n
    call MPI_Type_vector(3, 2, 5, MPI_INTEGER, t)
    call say('MPI_Type_vector count=3 blocklength=2 stride=5 type=MPI_INTEGER newtype=new:vector')
    call MPI_Type_commit(t)
    call say('MPI_Type_commit committype=vector')
    call MPI_Sendrecv(out, 2, t, right, 4, in, 12, MPI_INTEGER, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call say('MPI_Sendrecv sendcount=2 sendtype=vector dest='//num(right)//' sendtag=4 recvcount=12 '// &
         'recvtype=MPI_INTEGER source='//num(left)//' recvtag=4 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=48')
    call take
    places = [0, 64]
    call MPI_Type_create_struct(2, [1, 3], places, [t, MPI_DOUBLE_PRECISION], u)
    call say('MPI_Type_create_struct count=2 blocklengths=[1,3] displacements=[0,64] '// &
         'types=["vector","MPI_DOUBLE_PRECISION"] newtype=new:struct')
    call MPI_Type_get_extent(u, lb, extent)
    call say('MPI_Type_get_extent type=struct lb='//trim(lng(lb))//' extent='//lng(extent))
    call MPI_Type_size(u, n)
    call say('MPI_Type_size type=struct size=48')
    sum = sum + n
    call MPI_Type_free(t)
    call say('MPI_Type_free freetype=vector')
    call MPI_Type_free(u)
    call say('MPI_Type_free freetype=struct')
  end subroutine types

  subroutine operations
    type(MPI_Op) :: op
    logical :: commute
    call MPI_Op_create(larger, .true., op)
    call say('MPI_Op_create commute=1 newop=new:larger')
    call MPI_Op_commutative(op, commute)
    call say('MPI_Op_commutative op=larger commute=1')
    if (commute) sum = sum + 1
    call MPI_Reduce(out, in, 8, MPI_INTEGER, op, size - 1, MPI_COMM_WORLD)
    call say('MPI_Reduce inplace=false count=8 type=MPI_INTEGER op=larger root='//num(size - 1)//' comm=MPI_COMM_WORLD')
    call take
    call MPI_Op_free(op)
    call say('MPI_Op_free freeop=larger')
  end subroutine operations

  ! Keeps the larger of two integers.
  subroutine larger(invec, inoutvec, len, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = max(a, b)
  end subroutine larger

end program f08_mix
